"""Rules that the sample is searched for: divisors, primes and bits.

Run: not by hand; `python -m rlvr.sample search` tries each one on a real corpus.
Not the sample itself: most of these rules have no entry, and of those that have one each group keeps only some.
"""

# ruff: noqa: E501  (one rule a line, as in a table)
# fmt: off

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import gcd

from rlvr.sample_families import Candidate, Group, formula, listed, named, polynomial_text, terms_text


def divisor_rules() -> Iterator[Group]:
    yield Group("divisor", 2, 8, "gcd and lcm with a constant", [
        formula(f"{f}(n, {k})") for k in range(2, 30) for f in ("gcd", "lcm")
    ] + [formula(f"n/gcd(n, {k})") for k in range(2, 30)])
    yield Group("divisor", 3, 5, "sums of powers of divisors", [
        Candidate((f"Sum of the {k}th powers of the divisors of n." if k > 3 else f"a(n) = sigma_{k}(n).", f"a(n) = Sum_{{d|n}} d^{k}."), f"sum(d**{k} for d in divisors(n))", (1,)) for k in range(2, 9)
    ])
    tau, sigma = "len(divisors(n))", "sum(divisors(n))"
    yield Group("divisor", 3, 40, "single rules", [
        named("Number of divisors of n, 1 and n included.", tau, 1),
        named("Sum of the divisors of n: sigma(n).", sigma, 1),
        named("Euler totient phi(n): how many of 1..n are coprime to n.", "phi(n)", 1),
        named("Number of different primes that divide n.", "len(set(prime_factors(n)))", 1),
        named("Number of primes in the factorization of n, with multiplicity.", "len(prime_factors(n))", 1),
        named("a(n) = sigma(n) - n, the sum of the divisors of n below n.", f"{sigma} - n", 1),
        named("Number of divisors of n below n: tau(n) - 1.", f"{tau} - 1", 1),
        named("a(n) = n*tau(n).", f"n*{tau}", 1),
        named("a(n) = n - tau(n), the numbers up to n that do not divide n.", f"n - {tau}", 1),
        named("a(n) = n + tau(n).", f"n + {tau}", 1),
        named("a(n) = n - phi(n).", "n - phi(n)", 1),
        named("a(n) = n + phi(n).", "n + phi(n)", 1),
        named("a(n) = n*phi(n).", "n*phi(n)", 1),
        named("a(n) = n + sigma(n).", f"n + {sigma}", 1),
        named("a(n) = n*sigma(n).", f"n*{sigma}", 1),
        named("a(n) = sigma(n) + 1.", f"{sigma} + 1", 1),
        named("a(n) = sigma(n) + phi(n).", f"{sigma} + phi(n)", 1),
        named("a(n) = sigma(n) - phi(n).", f"{sigma} - phi(n)", 1),
        named("a(n) = sigma(n) - tau(n).", f"{sigma} - {tau}", 1),
        named("a(n) = sigma(n) + tau(n).", f"{sigma} + {tau}", 1),
        named("a(n) = phi(n)*tau(n).", f"phi(n)*{tau}", 1),
        named("a(n) = phi(n)*sigma(n).", f"phi(n)*{sigma}", 1),
        named("a(n) = sigma(n)*tau(n).", f"{sigma}*{tau}", 1),
        named("a(n) = phi(n) + tau(n).", f"phi(n) + {tau}", 1),
        named("a(n) = tau(n)^2.", f"{tau}**2", 1),
        named("a(n) = sigma(n)^2.", f"{sigma}**2", 1),
        named("a(n) = 2^tau(n).", f"2**{tau}", 1),
        named("a(n) = 2^omega(n), omega(n) = number of different primes that divide n.", "2**len(set(prime_factors(n)))", 1),
        named("a(n) = tau(tau(n)).", f"len(divisors({tau}))", 1),
        named("a(n) = phi(phi(n)).", "phi(phi(n))", 1),
        named("a(n) = sigma(sigma(n)).", f"sum(divisors({sigma}))", 1),
        named("a(n) = phi(sigma(n)).", f"phi({sigma})", 1),
        named("a(n) = sigma(phi(n)).", "sum(divisors(phi(n)))", 1),
        named("a(n) = tau(n^2).", "len(divisors(n**2))", 1),
        named("a(n) = tau(n^3).", "len(divisors(n**3))", 1),
        named("a(n) = sigma(n^2).", "sum(divisors(n**2))", 1),
        named("a(n) = phi(n^2).", "phi(n**2)", 1),
        named("Radical of n: product of the different primes dividing n.", "prod(set(prime_factors(n)))", 1),
        named("a(n) = n divided by the product of its different primes.", "n//prod(set(prime_factors(n)))", 1),
        named("Sum of the different primes dividing n.", "sum(set(prime_factors(n)))", 1),
        named("Sum of the prime factors of n, counted with multiplicity.", "sum(prime_factors(n))", 1),
        named("Greatest prime factor of n; a(1) = 1.", "max(prime_factors(n), default=1)", 1),
        named("Least prime factor of n; a(1) = 1.", "min(prime_factors(n), default=1)", 1),
        named("Greatest divisor of n below n; a(1) = 1.", "n//min(prime_factors(n), default=1)", 1),
        named("Greatest square that divides n.", "max(d for d in divisors(n) if is_square(d))", 1),
        named("Squarefree part of n: n divided by its greatest square divisor.", "n//max(d for d in divisors(n) if is_square(d))", 1),
        named("Number of square divisors of n.", "sum(is_square(d) for d in divisors(n))", 1),
        named("Sum of the square divisors of n.", "sum(d for d in divisors(n) if is_square(d))", 1),
        named("How many odd divisors n has.", "sum(d % 2 for d in divisors(n))", 1),
        named("Sum of the odd divisors of n.", "sum(d for d in divisors(n) if d % 2)", 1),
        named("Number of even divisors of n.", "sum(d % 2 == 0 for d in divisors(n))", 1),
        named("Sum of the even divisors of n.", "sum(d for d in divisors(n) if d % 2 == 0)", 1),
        named("Sum of gcd(k, n) for k = 1..n.", "sum(gcd(k, n) for k in range(1, n + 1))", 1),
        named("Sum of lcm(k, n) for k = 1..n.", "sum(lcm(k, n) for k in range(1, n + 1))", 1),
        named("Product of the divisors of n.", "prod(divisors(n))", 1),
        named("Sum of the divisors d of n with gcd(d, n/d) = 1.", "sum(d for d in divisors(n) if gcd(d, n//d) == 1)", 1),
        named("1 if no square above 1 divides n, otherwise 0.", "int(len(set(prime_factors(n))) == len(prime_factors(n)))", 1),
        named("1 if no square above 1 divides n, otherwise 0.", "int(n > 0 and len(set(prime_factors(n))) == len(prime_factors(n)))", 0),
        named("Product of p - 1 over the different primes p dividing n.", "prod(p - 1 for p in set(prime_factors(n)))", 1),
        named("Product of p + 1 over the different primes p dividing n.", "prod(p + 1 for p in set(prime_factors(n)))", 1),
        named("Dedekind psi: n times the product of (1 + 1/p) over the primes p dividing n.", "n*prod(p + 1 for p in set(prime_factors(n)))//prod(set(prime_factors(n)))", 1),
        named("Number of divisors d of n with d^2 <= n.", "sum(d*d <= n for d in divisors(n))", 1),
        named("Greatest divisor d of n with d^2 <= n.", "max(d for d in divisors(n) if d*d <= n)", 1),
        named("Least divisor d of n with d^2 >= n.", "min(d for d in divisors(n) if d*d >= n)", 1),
        named("Number of ordered ways to write n as a product of three factors.", "sum(len(divisors(d)) for d in divisors(n))", 1),
        named("a(n) = lcm(1, 2, ..., n).", "lcm(*range(1, n + 1))"),
        named("Number of k <= n with gcd(k, n) > 1.", "sum(gcd(k, n) > 1 for k in range(1, n + 1))", 1),
        named("Sum of the numbers up to n that are coprime to n.", "sum(k for k in range(1, n + 1) if gcd(k, n) == 1)", 1),
        named("Sum of the numbers up to n that do not divide n.", f"n*(n + 1)//2 - {sigma}", 1),
        named("Jordan function J_2(n): n^2 times the product of (1 - 1/p^2) over the primes p dividing n.", "n**2*prod(p*p - 1 for p in set(prime_factors(n)))//prod(set(prime_factors(n)))**2", 1),
    ])
    yield Group("divisor", 3, 10, "tau, sigma and phi at k*n + c", [
        formula(f"{name}({polynomial_text(k, c)})", f"{code.replace('#', python)}", (0, 1))
        for k in range(1, 8) for c in range(-2, 8) if (k, c) != (1, 0)
        for name, code in (("tau", "len(divisors(#))"), ("sigma", "sum(divisors(#))"), ("phi", "phi(#)"))
        for python in [polynomial_text(k, c)]
    ] + [formula(f"{name}({polynomial_text(k, 0, c)})", code.replace("#", polynomial_text(k, 0, c).replace("^", "**")), (0, 1, 2))
         for k in (1, 2) for c in (-1, 1) for name, code in (("tau", "len(divisors(#))"), ("sigma", "sum(divisors(#))"), ("phi", "phi(#)"))])
    yield Group("divisor", 3, 5, "divisors in residue classes", [
        named(f"Number of divisors of n that are congruent to {r} mod {m}.", f"sum(d % {m} == {r} for d in divisors(n))", 1)
        for m in range(3, 9) for r in range(m)
    ] + [
        named(f"Sum of the divisors of n that are not multiples of {m}.", f"sum(d for d in divisors(n) if d % {m})", 1) for m in range(3, 9)
    ])
    yield Group("divisor", 3, 4, "numbers with k divisors", [
        listed((f"Numbers that have exactly {k} divisors.",), f"len(divisors(k)) == {k}") for k in (3, 4, 5, 6, 8, 9, 10, 12, 14, 15, 16)
    ] + [
        listed((f"Numbers that exactly {k} different primes divide.",), f"len(set(prime_factors(k))) == {k}") for k in range(2, 4)
    ] + [
        listed((f"Numbers that are products of {k} primes, not necessarily different.",), f"len(prime_factors(k)) == {k}") for k in range(2, 5)
    ])
    yield Group("divisor", 4, 12, "lists by divisors", [
        listed(("Numbers k with sigma(k) > 2*k.",), "sum(divisors(k)) > 2*k"),
        listed(("Numbers k with sigma(k) < 2*k.",), "sum(divisors(k)) < 2*k"),
        listed(("Numbers that no square above 1 divides.",), "len(set(prime_factors(k))) == len(prime_factors(k))"),
        listed(("Numbers that some square above 1 divides.",), "len(set(prime_factors(k))) < len(prime_factors(k))"),
        listed(("Numbers that no cube above 1 divides.",), "all(k % j**3 for j in range(2, integer_root(k, 3) + 1))"),
        listed(("Numbers with an even number of prime factors, counted with multiplicity.",), "len(prime_factors(k)) % 2 == 0"),
        listed(("Numbers with an odd number of prime factors, counted with multiplicity.",), "len(prime_factors(k)) % 2 == 1"),
        listed(("Squarefree numbers with an even number of prime factors.",), "len(set(prime_factors(k))) == len(prime_factors(k)) and len(prime_factors(k)) % 2 == 0"),
        listed(("Squarefree numbers with an odd number of prime factors.",), "len(set(prime_factors(k))) == len(prime_factors(k)) and len(prime_factors(k)) % 2 == 1"),
        listed(("Numbers in whose factorization each prime occurs at least twice.",), "all(k % p**2 == 0 for p in set(prime_factors(k)))"),
        listed(("Numbers k that their number of divisors divides.",), "k % len(divisors(k)) == 0"),
        listed(("Numbers k that phi(k) divides.",), "k % phi(k) == 0"),
        listed(("Numbers k with gcd(k, phi(k)) = 1.",), "gcd(k, phi(k)) == 1"),
        listed(("Numbers of the form 2^i*3^j.",), "set(prime_factors(k)) <= {2, 3}"),
        listed(("Numbers with no prime factor above 5.",), "max(prime_factors(k), default=1) <= 5"),
        listed(("Numbers with no prime factor above 7.",), "max(prime_factors(k), default=1) <= 7"),
        listed(("Numbers of the form 2^i*5^j.",), "set(prime_factors(k)) <= {2, 5}"),
        listed(("Odd numbers k that are squarefree.",), "k % 2 and len(set(prime_factors(k))) == len(prime_factors(k))"),
        listed(("Even numbers k that are squarefree.",), "k % 2 == 0 and len(set(prime_factors(k))) == len(prime_factors(k))"),
    ] + [
        listed((f"Numbers with no prime factor below {p}.",), f"min(prime_factors(k), default={p}) >= {p}") for p in (7, 11)
    ] + [
        listed((f"Numbers of the form {p}^i*{q}^j.",), f"set(prime_factors(k)) <= {{{p}, {q}}}") for p, q in combinations((2, 3, 5, 7, 11), 2)
    ])
    yield Group("divisor", 4, 8, "partial sums", [
        named(f"a(n) = Sum_{{k=1..n}} {text}.", f"sum({code} for k in range(1, n + 1))")
        for text, code in (
            ("tau(k)", "len(divisors(k))"), ("sigma(k)", "sum(divisors(k))"), ("phi(k)", "phi(k)"), ("omega(k)", "len(set(prime_factors(k)))"),
            ("bigomega(k)", "len(prime_factors(k))"), ("k*tau(k)", "k*len(divisors(k))"), ("gcd(n, k)", "gcd(n, k)"), ("(n mod k)", "n % k"), ("floor(n/k)", "n//k"),
            ("floor(n/k)^2", "(n//k)**2"), ("lcm(n, k)", "lcm(n, k)"), ("floor(n^2/k)", "n**2//k"), ("floor(k^2/n)", "k**2//n"),
            ("k*floor(n/k)", "n//k*k"), ("k^2*floor(n/k)", "n//k*k**2"), ("floor(n/k^2)", "n//k**2"), ("prime(k)", "prime(k)"),
            ("prime(k)^2", "prime(k)**2"), ("k*prime(k)", "k*prime(k)"), ("floor(sqrt(k))", "isqrt(k)"), ("k^k", "k**k"), ("k!", "factorial(k)"),
            ("sigma(k)^2", "sum(divisors(k))**2"), ("k*phi(k)", "k*phi(k)"), ("tau(k)^2", "len(divisors(k))**2"),
        )
    ])


def prime_rules() -> Iterator[Group]:
    yield Group("prime", 3, 8, "functions of prime(n)", [
        formula(f"{terms_text((k, 'prime(n)'), (c, ''))}", f"{terms_text((k, 'prime(n)'), (c, ''))}", (1,)) for k in range(1, 13) for c in range(-10, 12)
    ] + [
        formula(f"prime(n)^{k}{tail}", f"prime(n)**{k}{tail}", (1,)) for k in (2, 3, 4, 5) for tail in ("", " + 1", " - 1", " + 2", " - 2", " - prime(n)", " + prime(n)")
    ])
    yield Group("prime", 3, 16, "single rules", [
        named("a(n) = prime(n), the n-th prime.", "prime(n)", 1),
        named("a(n) = prime(n + 1) - prime(n).", "prime(n + 1) - prime(n)", 1),
        named("a(n) = prime(n) + n.", "prime(n) + n", 1),
        named("a(n) = prime(n) - n.", "prime(n) - n", 1),
        named("a(n) = n*prime(n).", "n*prime(n)", 1),
        named("a(n) = prime(n)*prime(n + 1).", "prime(n)*prime(n + 1)", 1),
        named("a(n) = prime(n) + prime(n + 1).", "prime(n) + prime(n + 1)", 1),
        named("a(n) = prime(n) + prime(n + 1) + prime(n + 2).", "prime(n) + prime(n + 1) + prime(n + 2)", 1),
        named("a(n) = prime(n)*(prime(n) - 1)/2.", "prime(n)*(prime(n) - 1)//2", 1),
        named("a(n) = prime(n)*(prime(n) + 1)/2.", "prime(n)*(prime(n) + 1)//2", 1),
        named("a(n) = (prime(n) - 1)/2.", "(prime(n) - 1)//2", 2),
        named("a(n) = (prime(n) + 1)/2.", "(prime(n) + 1)//2", 2),
        named("a(n) = (prime(n)^2 - 1)/8.", "(prime(n)**2 - 1)//8", 2),
        named("a(n) = (prime(n)^2 - 1)/24.", "(prime(n)**2 - 1)//24", 3),
        named("a(n) = prime(2*n).", "prime(2*n)", 1),
        named("a(n) = prime(2*n - 1).", "prime(2*n - 1)", 1),
        named("a(n) = prime(n^2).", "prime(n**2)", 1),
        named("a(n) = prime(prime(n)).", "prime(prime(n))", 1),
        named("a(n) = pi(n), the number of primes up to n.", "sum(is_prime(k) for k in range(n + 1))"),
        named("a(n) = n - pi(n).", "n - sum(is_prime(k) for k in range(n + 1))"),
        named("a(n) = pi(n^2), the number of primes up to n^2.", "sum(is_prime(k) for k in range(n*n + 1))"),
        named("a(n) = pi(2*n) - pi(n).", "sum(is_prime(k) for k in range(n + 1, 2*n + 1))"),
        named("a(n) = pi(2*n).", "sum(is_prime(k) for k in range(2*n + 1))"),
        named("Sum of the first n primes.", "sum(prime(k) for k in range(1, n + 1))"),
        named("Sum of all primes up to n.", "sum(k for k in range(n + 1) if is_prime(k))"),
        named("Product of the first n primes.", "prod(prime(k) for k in range(1, n + 1))"),
        named("Product of all primes up to n.", "prod(k for k in range(n + 1) if is_prime(k))"),
        named("Least prime p > n.", "nth(1, is_prime, n + 1)"),
        named("Least prime p >= n.", "nth(1, is_prime, n)"),
        named("Greatest prime p <= n.", "max(k for k in range(n + 1) if is_prime(k))", 2),
        named("Least prime p > n^2.", "nth(1, is_prime, n*n + 1)"),
        named("Least prime p > 2^n.", "nth(1, is_prime, 2**n + 1)"),
        named("a(n) = 1 if n is a prime, otherwise 0.", "int(is_prime(n))"),
        named("a(n) = n if n is a prime, otherwise 1.", "n if is_prime(n) else 1"),
        named("a(n) = n if n is a prime, otherwise 0.", "n if is_prime(n) else 0"),
        named("Least prime p > n, minus n.", "nth(1, is_prime, n + 1) - n"),
        named("a(n) = phi(prime(n) - 1).", "phi(prime(n) - 1)", 1),
        named("a(n) = tau(prime(n) - 1).", "len(divisors(prime(n) - 1))", 1),
        named("a(n) = tau(prime(n) + 1).", "len(divisors(prime(n) + 1))", 1),
        named("Number of ways to write 2*n as a sum p + q of primes p <= q.", "sum(is_prime(p) and is_prime(2*n - p) for p in range(2, n + 1))"),
        named("Number of ways to write n as a sum p + q of primes p <= q.", "sum(is_prime(p) and is_prime(n - p) for p in range(2, n//2 + 1))"),
    ] + [named(f"a(n) = prime(n) mod {m}.", f"prime(n) % {m}", 1) for m in range(3, 14)])
    yield Group("prime", 3, 16, "residue classes", [
        listed((f"Primes congruent to {r} mod {m}.", f"Primes p with p mod {m} = {r}."), f"k % {m} == {r} and is_prime(k)") for m in range(3, 25) for r in range(1, m) if gcd(m, r) == 1
    ] + [
        listed((f"Primes congruent to {{{r}, {s}}} mod {m}.",), f"k % {m} in ({r}, {s}) and is_prime(k)") for m in range(5, 13) for r, s in combinations(range(1, m), 2) if gcd(m, r) == gcd(m, s) == 1
    ])
    yield Group("prime", 4, 8, "primes p with another prime", [
        listed((f"Primes p such that {text} is also prime.", f"Primes p for which {text} is prime."), f"is_prime(k) and is_prime({code})")
        for text, code in [(terms_text((m, "p"), (c, "")), terms_text((m, "k"), (c, ""))) for m in range(1, 9) for c in range(-12, 13) if gcd(m, c) == 1 and (m + c) % 2]
    ])
    yield Group("prime", 4, 8, "numbers that make a prime", [
        listed((f"Numbers k such that {text} is prime.",), f"is_prime({text})", start, (1, 0))
        for text in [terms_text((m, "k"), (c, "")) for m in range(2, 13) for c in range(-11, 12) if gcd(m, c) == 1] for start in (0, 1)
    ] + [
        listed((f"Numbers k such that {text} is prime.",), f"is_prime({text.replace('^', '**')})", start, (1, 0))
        for text in [terms_text((m, "k^2"), (b, "k"), (c, "")) for m in range(1, 4) for b in range(-1, 3) for c in range(-9, 12) if gcd(gcd(m, b), c) == 1 and (m + b) * c % 2 == m * c % 2] for start in (0, 1)
    ])
    yield Group("prime", 4, 6, "primes of a form", [
        Candidate(
            (f"Primes of the form {text}.",), f"nth(n, lambda p: is_prime(p) and any({text.replace('^', '**')} == p for k in range(isqrt(p) + 2)))", (1,)
        ) for text in [terms_text((m, "k^2"), (b, "k"), (c, "")) for m in range(1, 4) for b in range(-2, 3) for c in range(-9, 12) if gcd(gcd(m, b), c) == 1 and ((m + b) % 2 or c % 2)]
    ])
    yield Group("prime", 4, 10, "lists", [
        listed(("Composite numbers: products of at least two primes.",), "k > 1 and not is_prime(k)"),
        listed(("Numbers that are not prime, 1 included.",), "not is_prime(k)"),
        listed(("Odd numbers that are not prime.",), "k % 2 and not is_prime(k)"),
        listed(("Odd composite numbers.",), "k % 2 and k > 1 and not is_prime(k)"),
        listed(("Primes above 2.",), "k % 2 and is_prime(k)"),
        listed(("Prime powers p^e with e >= 1.",), "len(set(prime_factors(k))) == 1"),
        listed(("1 and the prime powers p^e.",), "len(set(prime_factors(k))) <= 1"),
        listed(("Prime powers p^e with e >= 2.",), "len(set(prime_factors(k))) == 1 and not is_prime(k)"),
        listed(("Products of two different primes.",), "len(prime_factors(k)) == len(set(prime_factors(k))) == 2"),
        listed(("Products p*q of two odd primes, p = q allowed.",), "k % 2 and len(prime_factors(k)) == 2"),
        listed(("Numbers k such that 6*k - 1 and 6*k + 1 are both prime.",), "is_prime(6*k - 1) and is_prime(6*k + 1)"),
        listed(("Numbers k with k - 1 and k + 1 both prime.",), "is_prime(k - 1) and is_prime(k + 1)"),
        listed(("Members p of prime pairs p, p + 2 or p - 2, p.",), "is_prime(k) and (is_prime(k - 2) or is_prime(k + 2))"),
        listed(("Primes p for which (p - 1)/2 is prime.",), "is_prime(k) and is_prime((k - 1)//2)"),
        listed(("Primes p such that neither p - 2 nor p + 2 is prime.",), "is_prime(k) and not is_prime(k - 2) and not is_prime(k + 2)"),
        listed(("Numbers of the form x^2 + y^2 that are prime.",), "is_prime(k) and k % 4 != 3"),
        listed(("Primes p with 2 a quadratic residue mod p, 2 included.",), "is_prime(k) and k % 8 in (1, 2, 7)"),
        listed(("Primes that have 3 or 5 as residue mod 8.",), "is_prime(k) and k % 8 in (3, 5)"),
        listed(("1 together with the primes.",), "k == 1 or is_prime(k)"),
        listed(("Squares of primes and primes themselves.",), "is_prime(k) or is_square(k) and is_prime(isqrt(k))"),
        listed(("Numbers k such that 2*k + 1 is not prime.",), "not is_prime(2*k + 1)"),
        listed(("Composite numbers with an odd smallest prime factor.",), "k % 2 and k > 1 and not is_prime(k)"),
        listed(("Even composite numbers and 1.",), "k == 1 or k % 2 == 0 and k > 2"),
        listed(("Primes p such that p + 2 and p + 6 are prime too.",), "is_prime(k) and is_prime(k + 2) and is_prime(k + 6)"),
        listed(("Primes p such that p + 4 and p + 6 are prime too.",), "is_prime(k) and is_prime(k + 4) and is_prime(k + 6)"),
    ] + [
        listed((f"Primes above {c}.",), f"k > {c} and is_prime(k)") for c in (3, 5, 7, 10)
    ] + [
        listed((f"Primes p for which x^2 = {d} has a solution mod p.",), f"is_prime(k) and any((x*x - {d}) % k == 0 for x in range(k))") for d in range(3, 40)
    ])


def bits() -> Iterator[Group]:
    ones = "n.bit_count()"
    yield Group("bit", 3, 60, "single rules", [
        named("Number of 1 bits of n.", ones),
        named("Number of 0 bits of n, without leading zeros.", "n.bit_length() - n.bit_count()"),
        named("a(n) = n minus the number of its 1 bits.", f"n - {ones}"),
        named("a(n) = n plus the number of its 1 bits.", f"n + {ones}"),
        named("Number of bits of n; 1 for n = 0.", "max(n.bit_length(), 1)"),
        named("a(n) = floor(log_2(n)), the number of bits of n minus 1.", "n.bit_length() - 1", 1),
        named("Number of bits of n, none for n = 0.", "n.bit_length()"),
        named("Exponent of 2 in n.", "valuation(n, 2)", 1),
        named("Exponent of 2 in 2*n.", "valuation(n, 2) + 1", 1),
        named("Greatest power of 2 that divides n.", "n & -n", 1),
        named("Greatest power of 2 up to n.", "1 << n.bit_length() - 1", 1),
        named("Least power of 2 >= n.", "1 << (n - 1).bit_length()", 1),
        named("Odd part of n: n divided by its greatest power of 2.", "n//(n & -n)", 1),
        named("a(n) = n XOR floor(n/2), the Gray code of n.", "n ^ n >> 1"),
        named("a(n) = n XOR 2*n.", "n ^ 2*n"),
        named("a(n) = n XOR 3*n.", "n ^ 3*n"),
        named("a(n) = n OR 2*n.", "n | 2*n"),
        named("a(n) = n AND 2*n.", "n & 2*n"),
        named("a(n) = n XOR 1.", "n ^ 1"),
        named("a(n) = n XOR (n + 1).", "n ^ n + 1"),
        named("a(n) = n XOR (n - 1).", "n ^ n - 1", 1),
        named("a(n) = n AND (n + 1).", "n & n + 1"),
        named("a(n) = n AND (n - 1).", "n & n - 1", 1, 0),
        named("a(n) = n OR (n + 1).", "n | n + 1"),
        named("a(n) = n OR (n - 1).", "n | n - 1", 1),
        named("a(n) = n XOR n^2.", "n ^ n*n"),
        named("a(n) = n AND n^2.", "n & n*n"),
        named("a(n) = n OR n^2.", "n | n*n"),
        named("Bits of n turned over: 0 to 1 and 1 to 0.", "n ^ (1 << n.bit_length()) - 1"),
        named("a(n) = n without its leading 1 bit.", "n ^ 1 << n.bit_length() - 1", 1),
        named("Leading 1 bit of n moved to the end: Josephus survivor of every second person.", "2*(n ^ 1 << n.bit_length() - 1) + 1", 1),
        named("Parity of the number of 1 bits of n.", f"{ones} % 2"),
        named("1 minus the parity of the number of 1 bits of n.", f"1 - {ones} % 2"),
        named("a(n) = 2^b, b = number of 1 bits of n.", f"2**{ones}"),
        named("a(n) = 3^b, b = number of 1 bits of n.", f"3**{ones}"),
        named("a(n) = 2^b, b = number of 0 bits of n.", "2**(n.bit_length() - n.bit_count())"),
        named("Numbers with an odd number of 1 bits.", "nth(n, lambda k: k.bit_count() % 2 == 1)", 1),
        named("Numbers with an even number of 1 bits.", "nth(n, lambda k: k.bit_count() % 2 == 0, 0)", 1),
        named("Numbers with two neighboring 1 bits nowhere.", "nth(n, lambda k: k & k >> 1 == 0, 0)", 1),
        named("Numbers with two neighboring 1 bits nowhere.", "nth(n + 1, lambda k: k & k >> 1 == 0, 0)", 0),
        named("Numbers with two neighboring 1 bits somewhere.", "nth(n, lambda k: k & k >> 1 > 0)", 1),
        named("Numbers with two neighboring 0 bits nowhere.", "nth(n, lambda k: '00' not in f'{k:b}', 0)", 1),
        named("Total number of 1 bits of 0, 1, ..., n.", "sum(k.bit_count() for k in range(n + 1))"),
        named("Total number of bits of 0, 1, ..., n, 0 having one.", "1 + sum(k.bit_length() for k in range(n + 1))"),
        named("Total number of 0 bits of 1, 2, ..., n.", "sum(k.bit_length() - k.bit_count() for k in range(n + 1))"),
        named("Bits of n read backwards.", "int(f'{n:b}'[::-1], 2)"),
        named("Number of blocks of equal bits of n.", "(n ^ n >> 1).bit_count()"),
        named("Number of blocks of equal bits of n; 1 for n = 0.", "max((n ^ n >> 1).bit_count(), 1)"),
        named("Number of blocks of 1 bits of n.", "(n & ~(n >> 1)).bit_count()"),
        named("Number of pairs of neighboring 1 bits of n.", "(n & n >> 1).bit_count()"),
        named("Number of 1 bits of 3*n.", "(3*n).bit_count()"),
        named("Number of 1 bits of n^2.", "(n*n).bit_count()"),
        named("Number of 1 bits of n!.", "factorial(n).bit_count()"),
        named("Number of 1 bits of 3^n.", "(3**n).bit_count()"),
        named("Number of 1 bits of prime(n).", "prime(n).bit_count()", 1),
        named("Exponent of 2 in n!.", f"n - {ones}"),
        named("Exponent of 2 in 3^n - 1.", "valuation(3**n - 1, 2)", 1),
        named("a(n) = n*2^b with b the number of bits of n: n shifted by its length.", "n << n.bit_length()"),
        named("n written twice in a row in bits.", "(n << n.bit_length()) + n"),
        named("Numbers whose bits read the same backwards.", "nth(n, lambda k: f'{k:b}' == f'{k:b}'[::-1], 0)", 1),
        named("Numbers whose exponent of 2 is even.", "nth(n, lambda k: valuation(k, 2) % 2 == 0)", 1),
        named("Numbers whose exponent of 2 is odd.", "nth(n, lambda k: valuation(k, 2) % 2 == 1)", 1),
        named("Numbers of the form 2^i + 2^j with i > j.", "nth(n, lambda k: k.bit_count() == 2)", 1),
        named("Numbers that are a sum of at most two powers of 2, at least one.", "nth(n, lambda k: k.bit_count() < 3)", 1),
        named("Number of odd binomial(n, k) for k = 0..n.", f"2**{ones}"),
        named("Number of even binomial(n, k) for k = 0..n.", f"n + 1 - 2**{ones}"),
        named("Stern's sequence: a(2*n) = a(n), a(2*n + 1) = a(n) + a(n + 1).", "reduce(lambda p, b: (p[0], sum(p)) if b == '0' else (sum(p), p[1]), f'{n:b}', (0, 1))[0]"),
        named("a(n) = n minus the greatest power of 2 dividing n.", "n - (n & -n)", 1),
        named("Number of trailing 1 bits of n.", "valuation(n + 1, 2)"),
        named("Bits of n, each one doubled.", "sum(3*(n >> i & 1) << 2*i for i in range(n.bit_length()))"),
        named("XOR of 0, 1, ..., n.", "reduce(lambda x, y: x ^ y, range(n + 1), 0)"),
        named("OR of 0, 1, ..., n.", "(1 << n.bit_length()) - 1"),
        named("a(n) = floor(n/2) + floor(n/4) + floor(n/8) + ....", f"n - {ones}"),
        named("Sum of floor(n/2^k) for k >= 0.", f"2*n - {ones}"),
        named("Paper folding: 1 if the odd part of n is 1 mod 4, otherwise 0.", "int(n//(n & -n) % 4 == 1)", 1),
        named("Steps n -> n/2 (even) or n - 1 (odd) from n down to 0.", "max(n.bit_length() + n.bit_count() - 1, 0)"),
        named("Steps n -> n/2 (even) or n - 1 (odd) from n down to 1.", "n.bit_length() + n.bit_count() - 2", 1),
    ])
    yield Group("bit", 2, 6, "with a constant", [
        named(f"a(n) = n {word} {k}.", f"n {sign} {k}") for k in range(1, 20) for word, sign in (("XOR", "^"), ("AND", "&"), ("OR", "|"))
    ] + [named(f"Numbers whose bits end in {k:0{w}b}.", f"{2**w}*n + {k}", 0) for w in (2, 3, 4) for k in range(2**w)])
    yield Group("bit", 3, 6, "bits read in another base", [
        named(f"Bits of n read in base {b}: sums of different powers of {b}.", f"int(f'{{n:b}}', {b})", 0) for b in range(3, 20)
    ])
    yield Group("bit", 3, 6, "numbers with k 1 bits and leading bits", [
        named(f"Numbers with exactly {k} 1 bits.", f"nth(n, lambda k: k.bit_count() == {k})", 1) for k in range(2, 12)
    ] + [
        named(f"Numbers whose bits begin with {k:b}.", f"nth(n, lambda k: f'{{k:b}}'.startswith('{k:b}'))", 1) for k in range(2, 16)
    ])
    yield Group("bit", 3, 6, "exponents of other primes", [
        named(f"Exponent of {p} in n.", f"valuation(n, {p})", 1) for p in (3, 5, 6, 7, 10)
    ] + [named(f"Exponent of {p} in n!.", f"valuation(factorial(n), {p})") for p in (3, 5, 7)] + [
        named(f"Greatest power of {p} that divides n.", f"{p}**valuation(n, {p})", 1) for p in (3, 5, 7)
    ] + [named(f"a(n) = n divided by the greatest power of {p} that divides n.", f"n//{p}**valuation(n, {p})", 1) for p in (3, 5, 7)] + [
        named(f"Number of base-{b} digits {d} of n.", f"digits(n, {b}).count({d})") for b in (3, 4) for d in range(b)
    ] + [named(f"Sum of the base-{b} digits of n.", f"sum(digits(n, {b}))") for b in range(3, 10)])
