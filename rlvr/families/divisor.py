"""Families of made-up sequences about digits, divisors and prime factors.

A family is a function `rng -> Draft`; the table with their weights is in rlvr/synthetic.py. Not meant to be run.
"""

from __future__ import annotations

import math

from rlvr.families.drafts import Draft, Random, program, times
from rlvr.families.number import congruence, dense, search


def base_conditions(rng: Random) -> Draft:
    """Numbers with a condition on their digits."""
    k, b = rng.randint(1, 6), rng.randint(3, 10)
    d = rng.randrange(b)
    pattern = rng.choice(["11", "00", "101", "10", "111", "01", "110", "100"])
    prefix = bin(rng.randint(2, 31))[2:]
    text, condition, start = rng.choice([
        (f"Numbers with {k} 1's in their binary expansion.", f"bin(k).count('1')=={k}", 1),
        (f"Numbers with exactly {k} ones in binary expansion.", f"bin(k).count('1')=={k}", 1),
        (f"Binary expansion starts {prefix}.", f"bin(k)[2:].startswith('{prefix}')", 1),
        (f"Binary expansion starts with {prefix}.", f"bin(k)[2:].startswith('{prefix}')", 1),
        (f"Binary expansion contains {pattern}.", f"'{pattern}' in bin(k)", 1),
        (f"Numbers whose binary expansion contains {pattern}.", f"'{pattern}' in bin(k)[2:]", 1),
        (f"Numbers whose binary expansion does not contain {pattern}.", f"'{pattern}' not in bin(k)[2:]", 0),
        (f"Numbers with no {pattern} in binary expansion.", f"'{pattern}' not in bin(k)[2:]", 0),
        (f"Numbers containing a {d % 10} in base 10.", f"'{d % 10}' in str(k)", 1),
        (f"Numbers that contain a {d}.", f"'{d}' in str(k)", 1),
        (f"Numbers without a {d} as a digit.", f"'{d}' not in str(k)", 1),
        (f"Numbers with digit sum {k + 2}.", f"sum(map(int,str(k)))=={k + 2}", 1),
        (f"Numbers ending in {d}.", f"k%10=={d}", 0), (f"Numbers that end with {d}.", f"k%10=={d}", 0),
        (f"Numbers whose digit sum is divisible by {k + 1}.", f"sum(map(int,str(k)))%{k + 1}==0", 1),
        ("Evil numbers: numbers with an even number of 1's in their binary expansion.", "bin(k).count('1')%2==0", 0),
        ("Odious numbers: numbers with an odd number of 1's in their binary expansion.", "bin(k).count('1')%2", 1),
        ("Palindromes in base 10.", "str(k)==str(k)[::-1]", 0),
        ("Numbers whose digits are all even.", "set(str(k))<=set('02468')", 0),
        ("Numbers whose digits are all odd.", "set(str(k))<=set('13579')", 1),
        ("Numbers divisible by the sum of their digits.", "k%sum(map(int,str(k)))==0", 1),
        ("Numbers with distinct digits.", "len(set(str(k)))==len(str(k))", 0),
        ("Numbers whose binary expansion is palindromic.", "bin(k)[2:]==bin(k)[:1:-1]", 0),
        ("Fibbinary numbers: no adjacent 1's in binary expansion.", "k&2*k==0", 0),
        (f"Numbers k such that k^2 ends with {d}.", f"k*k%10=={d}", 0),
        ("Numbers with an even number of digits 1 in binary.", "bin(k).count('1')%2==0", 0),
        ("Numbers that are not squares.", "math.isqrt(k)**2!=k", 1), ("The nonsquares.", "math.isqrt(k)**2!=k", 1),
        ("Numbers that are not triangular.", "math.isqrt(8*k+1)**2!=8*k+1", 1),
    ])  # fmt: skip
    if not dense(condition):
        return congruence(rng)
    return Draft(text, 1, search(condition, start))


def digit_functions(rng: Random) -> Draft:
    b, c, j = rng.randint(2, 12), rng.randint(2, 12), rng.randint(2, 5)
    inner, inner_py = rng.choice([
        ("n", "n"), ("n", "n"), ("n", "n"), ("n^2", "n*n"), (f"{j}*n", f"{j}*n"), ("prime", ""),
    ]) if rng.random() < 0.7 else (f"{c}^n", f"{c}**n")  # fmt: skip
    inner, inner_py = ("n", "n") if not inner_py else (inner, inner_py)
    digits = f"x={inner_py}\ns=0\nwhile x: s,x=s+x%{b},x//{b}\nreturn s"
    text, body = rng.choice([
        (f"Sum of digits of {inner}.", f"return sum(map(int,str({inner_py})))"),
        (f"Digital sum of {inner}.", f"return sum(map(int,str({inner_py})))"),
        (f"Sum of digits of {inner} written in base {b}.", digits),
        (f"Digital sum (i.e., sum of digits) of {inner} in base {b}.", digits),
        (f"Number of digits in {inner}.", f"return len(str({inner_py}))"),
        (f"Number of 1's in binary expansion of {inner}.", f"return bin({inner_py}).count('1')"),
        (f"Number of 0's in binary expansion of {inner}.", f"return bin({inner_py})[2:].count('0')"),
        (f"Binary weight of {inner}.", f"return bin({inner_py}).count('1')"),
        (f"Length of binary representation of {inner}.", f"return len(bin({inner_py}))-2"),
        (f"Last digit of {inner}.", f"return {inner_py}%10"), (f"Final digit of {inner}.", f"return {inner_py}%10"),
        (f"Initial digit of {inner}.", f"return int(str({inner_py})[0])"),
        (f"First digit of {inner}.", f"return int(str({inner_py})[0])"),
        (f"Product of digits of {inner}.", f"return math.prod(map(int,str({inner_py})))"),
        (f"Reverse digits of {inner}.", f"return int(str({inner_py})[::-1])"),
        (f"{inner} written backwards.", f"return int(str({inner_py})[::-1])"),
        (f"Number of bits in {inner}.", f"return len(bin({inner_py}))-2"),
        (f"Number of zeros in {inner}.", f"return str({inner_py}).count('0')"),
        (f"Largest digit of {inner}.", f"return int(max(str({inner_py})))"),
        (f"Exponent of highest power of {b} dividing n.", f"k=0\nwhile n%{b}**(k+1)==0: k+=1\nreturn k"),
        (f"Highest power of {b} dividing n.", f"k=1\nwhile n%(k*{b})==0: k*={b}\nreturn k"),
        (f"The {b}-adic valuation of n.", f"k=0\nwhile n%{b}**(k+1)==0: k+=1\nreturn k"),
        ("Binary Gray code: n XOR floor(n/2).", "return n^n//2"),
        ("Decimal equivalent of Gray code for n.", "return n^n//2"),
        ("a(n) is Gray-coded into n.", "x=n\nwhile n: n//=2; x^=n\nreturn x"),
        (f"Highest power of {b} <= n.", f"k=1\nwhile k*{b}<=n: k*={b}\nreturn k"),
        (f"Number of trailing zeros of n in base {b}.", f"k=0\nwhile n%{b}**(k+1)==0: k+=1\nreturn k"),
        ("Parity of the binary weight of n.", "return bin(n).count('1')%2"),
        ("Thue-Morse sequence.", "return bin(n).count('1')%2"),
        ("Binary reversal of n.", "return int(bin(n)[:1:-1],2)"),
        (
            f"Numbers n written in base {b} and read in base {b + c}.",
            f"s,q=0,1\nwhile n: s,q,n=s+n%{b}*q,q*{b + c},n//{b}\nreturn s",
        ),
        ("Largest odd divisor of n.", "while n%2==0: n//=2\nreturn n"),
        ("Odd part of n.", "while n%2==0: n//=2\nreturn n"),
        (f"Remove all factors of {b} from n.", f"while n%{b}==0: n//={b}\nreturn n"),
        ("Interpret the binary expansion of n in base 3.", "return int(bin(n)[2:],3)"),
        ("n in binary, read as decimal.", "return int(bin(n)[2:])"),
        ("Concatenation of n and n.", "return int(str(n)*2)"),
        (f"n followed by {c}, concatenated.", f"return int(str(n)+'{c}')"),
    ])  # fmt: skip
    offset = 1 if any(word in body for word in ("%(k", "k+1)==0", "while n%", "k=1")) else rng.choice([0, 1])
    return Draft(text, offset, program(body))


def divisor_sums(rng: Random) -> Draft:
    k, m = rng.randint(2, 9), rng.randint(2, 12)
    text, term = rng.choice([
        ("Number of divisors of n.", "1"), ("d(n), the number of divisors of n.", "1"),
        ("Sum of the divisors of n.", "d"), ("sigma(n), the sum of the divisors of n.", "d"),
        ("Sum of squares of divisors of n.", "d*d"), (f"a(n) = sigma_{k}(n).", f"d**{k}"),
        (f"sigma_{k}(n): sum of {k}th powers of divisors of n.", f"d**{k}"),
        (f"a(n) = sigma_{k}(n), the sum of the {k}th powers of the divisors of n.", f"d**{k}"),
        (f"Sum of {k}th powers of divisors of n.", f"d**{k}"), ("Sum of odd divisors of n.", "d*(d%2)"),
        ("Number of odd divisors of n.", "d%2"), ("Number of even divisors of n.", "1-d%2"),
        ("Sum of even divisors of n.", "d*(1-d%2)"),
        (f"Number of divisors of n that are divisible by {m}.", f"d%{m}==0"),
        (f"Number of divisors of n which are multiples of {m}.", f"d%{m}==0"),
        (f"Number of divisors of n of form {m}k+1.", f"d%{m}==1%{m}"),
        (f"Number of divisors of n that are <= {m}.", f"d<={m}"),
        (f"Sum of the divisors of n that are <= {m}.", f"d*(d<={m})"), ("Sum of proper divisors of n.", "d*(d<n)"),
        ("Number of proper divisors of n.", "d<n"), ("Sum of the aliquot parts of n.", "d*(d<n)"),
        ("a(n) = Sum_{d|n} d!.", "math.factorial(d)"), (f"a(n) = Sum_{{d|n}} {k}^d.", f"{k}**d"),
        (f"a(n) = Sum_{{d|n}} d^{k}.", f"d**{k}"), ("a(n) = Sum_{d|n} d^d.", "d**d"),
        ("a(n) = Sum_{d|n} d*(d+1)/2.", "d*(d+1)//2"), ("Number of square divisors of n.", "math.isqrt(d)**2==d"),
        ("Sum of square divisors of n.", "d*(math.isqrt(d)**2==d)"),
        ("Sum of the unitary divisors of n.", "d*(math.gcd(d,n//d)==1)"),
        ("Number of unitary divisors of n.", "math.gcd(d,n//d)==1"),
        (f"a(n) = Sum_{{d|n}} binomial(d+{k},{k}).", f"math.comb(d+{k},{k})"), ("a(n) = Sum_{d|n} (d mod 2).", "d%2"),
        ("a(n) = Sum_{d|n} gcd(d, n/d).", "math.gcd(d,n//d)"),
    ])  # fmt: skip
    loop = f"sum({term} for d in range(1,n+1) if n%d==0)"
    pick = rng.random()
    if pick < 0.2:
        base, lead = rng.choice([("d(n)", "1"), ("sigma(n)", "d")])
        total = f"sum({lead} for d in range(1,n+1) if n%d==0)"
        c = rng.randint(1, 9)
        text, total = rng.choice([
            (f"a(n) = n + {base}.", f"n+{total}"), (f"a(n) = n*{base}.", f"n*{total}"),
            (f"a(n) = {base} mod {m}.", f"{total}%{m}"), (f"a(n) = {base}^{k}.", f"{total}**{k}"),
            (f"a(n) = {base} + {c}.", f"{total}+{c}"), (f"a(n) = {k}*{base}.", f"{k}*{total}"),
            (f"a(n) = {k}^{base}.", f"{k}**{total}"), ("a(n) = sigma(n) - n.", "sum(d for d in range(1,n) if n%d==0)"),
        ])  # fmt: skip
        return Draft(
            text + (" Here d(n) is the number of divisors of n." if "d(n)" in text and rng.random() < 0.3 else ""), 1,
            program(f"return {total}"),
        )  # fmt: skip
    if pick < 0.3 and term in ("1", "d"):
        inner, py = rng.choice([
            ("n^2", "n*n"), (f"{m}*n", f"{m}*n"), (f"n^2+{k}", f"n*n+{k}"), ("n!", "math.factorial(n)"),
            (f"n+{k}", f"n+{k}"), ("n*(n+1)/2", "n*(n+1)//2"), ("2^n", "2**n"),
        ])  # fmt: skip
        if "!" in inner or "2^n" in inner:
            inner, py = "n^2", "n*n"
        text = f"Number of divisors of {inner}." if term == "1" else f"Sum of divisors of {inner}."
        return Draft(text, 1, program(f"m={py}\nreturn sum({term} for d in range(1,m+1) if m%d==0)"))
    return Draft(text, 1, program(f"return {loop}"))


PHI = "sum(math.gcd({x},k)==1 for k in range(1,{x}+1))"


def totients(rng: Random) -> Draft:
    k, c, m = rng.randint(2, 9), rng.randint(1, 9), rng.randint(2, 12)
    phi = PHI.format(x="n")
    text, total = rng.choice([
        ("Euler totient function phi(n): count numbers <= n and prime to n.", phi),
        ("Euler totient function phi(n).", phi), ("a(n) = phi(n).", phi), (f"a(n) = phi(n) + {c}.", f"{phi}+{c}"),
        ("a(n) = n - phi(n).", f"n-{phi}"), (f"a(n) = {k}*phi(n).", f"{k}*{phi}"), ("a(n) = n*phi(n).", f"n*{phi}"),
        ("a(n) = n + phi(n).", f"n+{phi}"), (f"a(n) = phi(n)^{k}.", f"{phi}**{k}"),
        (f"a(n) = phi(n) mod {m}.", f"{phi}%{m}"),
        (f"a(n) = phi({k}*n).", "sum(math.gcd(K*n,k)==1 for k in range(1,K*n+1))".replace("K", str(k))),
        ("a(n) = phi(n^2).", f"n*{phi}"),
        ("Sum of gcd(n,k) for k = 1..n.", "sum(math.gcd(n,k) for k in range(1,n+1))"),
        ("Pillai's function: Sum_{k=1..n} gcd(n,k).", "sum(math.gcd(n,k) for k in range(1,n+1))"),
        ("Sum of numbers <= n and prime to n.", "sum(k for k in range(1,n+1) if math.gcd(n,k)==1)"),
        ("a(n) = Sum_{k=1..n} phi(k).", "sum(math.gcd(j,k)==1 for j in range(1,n+1) for k in range(1,j+1))"),
        ("Number of numbers < n that are not coprime to n.", f"n-{phi}"),
        (f"Number of solutions to x^{k} == {rng.choice([0, 1])} (mod n).", ""),
        (
            f"Number of distinct {'squares' if k == 2 else 'cubes' if k == 3 else f'{k}th powers'} mod n.",
            f"len({{x**{k}%n for x in range(n)}})",
        ),
        ("Number of quadratic residues mod n.", "len({x*x%n for x in range(n)})"),
        (f"Number of powers of {k} modulo n.", f"len({{{k}**i%n for i in range(2*n)}})"),
    ])  # fmt: skip
    if not total:
        r = 0 if "== 0" in text else 1
        total = f"sum((x**{k}-{r})%n==0 for x in range(n))" if r else f"sum(x**{k}%n==0 for x in range(n))"
    return Draft(text, 1, program(f"return {total}"))


FACTOR_LOOP = "s,d={start},2\nwhile n>1:\n    if n%d: d+=1\n    else: n//=d; {update}\nreturn s"


DISTINCT_LOOP = (
    "s,d={start},2\nwhile n>1:\n    if n%d==0:\n        {update}\n        while n%d==0: n//=d\n    d+=1\nreturn s"
)


def prime_factors(rng: Random) -> Draft:
    c = rng.randint(1, 5)
    text, body = rng.choice([
        ("Number of prime divisors of n counted with multiplicity.", FACTOR_LOOP.format(start=0, update="s+=1")),
        ("bigomega(n): number of prime factors of n with multiplicity.", FACTOR_LOOP.format(start=0, update="s+=1")),
        ("a(n) = bigomega(n).", FACTOR_LOOP.format(start=0, update="s+=1")),
        ("Number of distinct primes dividing n.", DISTINCT_LOOP.format(start=0, update="s+=1")),
        ("a(n) = omega(n).", DISTINCT_LOOP.format(start=0, update="s+=1")),
        ("Sum of primes dividing n with multiplicity.", FACTOR_LOOP.format(start=0, update="s+=d")),
        ("Sum of primes dividing n (with repetition).", FACTOR_LOOP.format(start=0, update="s+=d")),
        ("Sum of the distinct primes dividing n.", DISTINCT_LOOP.format(start=0, update="s+=d")),
        ("Largest squarefree number dividing n.", DISTINCT_LOOP.format(start=1, update="s*=d")),
        ("Squarefree kernel of n.", DISTINCT_LOOP.format(start=1, update="s*=d")),
        ("a(n) = rad(n).", DISTINCT_LOOP.format(start=1, update="s*=d")),
        ("Largest prime factor of n.", FACTOR_LOOP.format(start=1, update="s=d")),
        ("Greatest prime dividing n, with a(1) = 1.", FACTOR_LOOP.format(start=1, update="s=d")),
        (f"a(n) = {c + 1}^omega(n).", DISTINCT_LOOP.format(start=1, update=f"s*={c + 1}")),
        (f"a(n) = {c + 1}^bigomega(n).", FACTOR_LOOP.format(start=1, update=f"s*={c + 1}")),
        (f"a(n) = Product_{{p|n}} (p + {c}).", DISTINCT_LOOP.format(start=1, update=f"s*=d+{c}")),
        ("Least prime dividing n, with a(1) = 1.", "return next((d for d in range(2,n+1) if n%d==0),1)"),
        ("Smallest prime factor of n.", "return next((d for d in range(2,n+1) if n%d==0),1)"),
        (f"Completely multiplicative with a(p) = p + {c}.", FACTOR_LOOP.format(start=1, update=f"s*=d+{c}")),
        ("Largest square dividing n.", "return max(d*d for d in range(1,n+1) if n%(d*d)==0)"),
        ("Squarefree part of n.", "return n//max(d*d for d in range(1,n+1) if n%(d*d)==0)"),
        ("Largest proper divisor of n.", "return max([d for d in range(1,n) if n%d==0]+[1])"),
        ("Smallest divisor of n that is >= sqrt(n).", "return next(d for d in range(1,n+1) if n%d==0 and d*d>=n)"),
        ("a(n) = n^2*Product_{p|n} (1 + 1/p).", DISTINCT_LOOP.format(start="n*n", update="s=s//d*(d+1)")),
        (
            "Dedekind psi function: n*Product_{p|n} (1 + 1/p).",
            DISTINCT_LOOP.format(start="n", update="s=s//d*(d+1)"),
        ),
    ])  # fmt: skip
    return Draft(text, 1, program(body))


OMEGA_SETS = [
    ("Squarefree numbers", "all(k%(d*d) for d in range(2,math.isqrt(k)+1))"),
    ("Numbers that are not squarefree", "any(k%(d*d)==0 for d in range(2,math.isqrt(k)+1))"),
    ("Composite numbers", "k>3 and not p(k)"), ("The composite numbers", "k>3 and not p(k)"),
    ("The nonprime numbers", "not p(k)"), ("Odd primes", "k>2 and p(k)"),
    ("Odd composite numbers", "k%2 and k>3 and not p(k)"),
    ("Odd squarefree numbers", "k%2 and all(k%(d*d) for d in range(2,math.isqrt(k)+1))"),
    ("Numbers with an odd number of divisors", "math.isqrt(k)**2==k"),
    ("Semiprimes (or biprimes): products of two primes", "any(k%d==0 and p(d) and p(k//d) for d in range(2,k))"),
    ("Products of two primes", "any(k%d==0 and p(d) and p(k//d) for d in range(2,k))"),
    (
        "Squarefree semiprimes: products of two distinct primes",
        "any(k%d==0 and d*d!=k and p(d) and p(k//d) for d in range(2,k))",
    ),
    ("Numbers that are the sum of 2 squares", "any(math.isqrt(k-x*x)**2==k-x*x for x in range(math.isqrt(k)+1))"),
    (
        "Numbers that are the sum of two nonzero squares",
        "any(math.isqrt(k-x*x)**2==k-x*x for x in range(1,math.isqrt(k-1)+1))",
    ),
    (
        "Numbers that are not the sum of 2 squares",
        "not any(math.isqrt(k-x*x)**2==k-x*x for x in range(math.isqrt(k)+1))",
    ),
    ("Even numbers that are not squares", "k%2==0 and math.isqrt(k)**2!=k"),
    ("Abundant numbers: sum of divisors exceeds 2n", "sum(d for d in range(1,k) if k%d==0)>k"),
    ("Deficient numbers", "sum(d for d in range(1,k) if k%d==0)<k"),
    ("Prime powers greater than 1", "k>1 and [d for d in range(2,k+1) if k%d==0 and p(d)][1:]==[]"),
    ("Lesser of twin primes", "p(k) and p(k+2)"), ("Greater of twin primes", "p(k) and p(k-2)"),
    ("Primes p such that p-1 is squarefree", "p(k) and all((k-1)%(d*d) for d in range(2,math.isqrt(k)+1))"),
    ("Isolated primes: p-2 and p+2 are not prime", "p(k) and not p(k-2) and not p(k+2)"),
    ("Palindromic primes", "str(k)==str(k)[::-1] and p(k)"),
]  # fmt: skip


def number_sets(rng: Random) -> Draft:
    _k, m = rng.randint(2, 6), rng.choice([2, 3, 4, 6, 8, 12])
    if rng.random() < 0.35:
        j = rng.randint(2, 7)
        primes = [q for q in (2, 3, 5, 7, 11, 13) if q <= rng.choice([5, 7, 11, 13])]
        text, condition = rng.choice([
            (f"Numbers with exactly {m} divisors", f"sum(k%d==0 for d in range(1,k+1))=={m}"),
            (f"Numbers with {m} divisors", f"sum(k%d==0 for d in range(1,k+1))=={m}"),
            (
                f"Numbers k such that the number of divisors of k is divisible by {j}",
                f"sum(k%d==0 for d in range(1,k+1))%{j}==0",
            ),
            (
                f"{primes[-1]}-smooth numbers: numbers whose prime divisors are all <= {primes[-1]}",
                f"{math.prod(primes)}**k%k==0",
            ),
            (f"{primes[-1]}-smooth numbers", f"{math.prod(primes)}**k%k==0"),
            (
                f"Numbers whose least prime factor is {primes[-1]}",
                f"k%{primes[-1]}==0 and math.gcd(k,{math.prod(primes[:-1])})==1",
            ),
            (
                f"Numbers that are congruent to a square mod {j + 5}",
                f"k%{j + 5} in {{x*x%{j + 5} for x in range({j + 5})}}",
            ),
            (f"Squarefree numbers divisible by {j}", f"k%{j}==0 and all(k%(d*d) for d in range(2,math.isqrt(k)+1))"),
        ])  # fmt: skip
    else:
        text, condition = rng.choice(OMEGA_SETS)
    if not dense(condition):
        return congruence(rng)
    return Draft(text + ".", 1, search(condition))


def divisors_of_constants(rng: Random) -> Draft:
    """Sum_{d|12} phi(d)*n^(12/d), sums of n-th powers of divisors of k."""
    k = rng.randint(2, 60)
    divisors = [d for d in range(1, k + 1) if k % d == 0]
    if rng.random() < 0.5:
        name = rng.choice([
            f"Sum of n-th powers of divisors of {k}.", f"a(n) = sigma_n({k}).",
            f"a(n) = sigma_n({k}), the sum of the n-th powers of the divisors of {k}.",
        ])  # fmt: skip
        return Draft(name, 0, program(f"return sum(d**n for d in range(1,{k + 1}) if {k}%d==0)"))
    phi = [sum(math.gcd(d, j) == 1 for j in range(1, d + 1)) for d in divisors]
    terms = "+".join(times(f, "n" if k == d else f"n**{k // d}") for d, f in zip(divisors, phi, strict=True))
    if k > 12:
        return Draft(
            f"Sum of n-th powers of divisors of {k}.", 0,
            program(f"return sum(d**n for d in range(1,{k + 1}) if {k}%d==0)"),
        )  # fmt: skip
    name = rng.choice([f"a(n) = Sum_{{d|{k}}} phi(d)*n^({k}/d).", f"Sum_{{d|{k}}} phi(d)*n^({k}/d)."])
    return Draft(name, 0, program(f"return {terms}"))
