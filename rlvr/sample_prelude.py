"""Helper functions that the rules of the bundled sample may call; `known_good()` copies in those it needs.

Run: nothing to run. Plain and slow on purpose (small n, exact integers); not a number theory library.
Each function here stands alone or calls others of this file; `math` names are imported by `known_good()` too.
"""

from math import isqrt


def linear_recurrence(coefficients, start, n):
    """Term n (counted from 0) of a(k) = c1*a(k-1) + c2*a(k-2) + ... with these first terms."""
    terms = list(start)
    while len(terms) <= n:
        terms.append(sum(c * t for c, t in zip(coefficients, reversed(terms), strict=False)))
    return terms[n]


def series(numerator, denominator, n):
    """Coefficient of x^n in numerator/denominator, both lists of coefficients from x^0 up, denominator[0] = 1."""
    terms = []
    for k in range(n + 1):
        term = numerator[k] if k < len(numerator) else 0
        term -= sum(denominator[j] * terms[k - j] for j in range(1, min(k, len(denominator) - 1) + 1))
        terms.append(term)
    return terms[n]


def fibonacci(n):
    """Fibonacci number F(n), n >= 0."""
    x, y = 0, 1
    for _ in range(n):
        x, y = y, x + y
    return x


def lucas(n):
    """Lucas number L(n), n >= 0."""
    x, y = 2, 1
    for _ in range(n):
        x, y = y, x + y
    return x


def nth(n, test, start=1):
    """The n-th (counted from 1) integer k >= start for which test(k) is true."""
    k = start - 1
    while n > 0:
        k += 1
        if test(k):
            n -= 1
    return k


def is_prime(n):
    """True for a prime, by trial division."""
    if n < 4:
        return n > 1
    return n % 2 > 0 and all(n % d for d in range(3, isqrt(n) + 1, 2))


def prime(n):
    """The n-th prime, prime(1) = 2."""
    return nth(n, is_prime, 2)


def is_square(n):
    """True for 0, 1, 4, 9, ..."""
    return n >= 0 and isqrt(n) ** 2 == n


def divisors(n):
    """All positive divisors of n >= 1, in no order."""
    small = [d for d in range(1, isqrt(n) + 1) if n % d == 0]
    return small + [n // d for d in small if d * d < n]


def prime_factors(n):
    """Prime factors of n >= 1 with repetition, ascending."""
    factors, p = [], 2
    while p * p <= n:
        while n % p == 0:
            factors.append(p)
            n //= p
        p += 1
    return factors + [n] * (n > 1)


def phi(n):
    """Euler's totient."""
    result = n
    for p in set(prime_factors(n)):
        result -= result // p
    return result


def valuation(n, p):
    """Exponent of p in n >= 1."""
    exponent = 0
    while n % p == 0:
        n //= p
        exponent += 1
    return exponent


def integer_root(n, k):
    """Largest r with r^k <= n."""
    r = 0
    while (r + 1) ** k <= n:
        r += 1
    return r


def digits(n, base):
    """Digits of n >= 0 in a base, lowest first; none for 0."""
    result = []
    while n:
        n, digit = divmod(n, base)
        result.append(digit)
    return result


def restricted_partitions(n, parts):
    """Number of ways to write n as a sum of these parts, order ignored, parts may repeat."""
    ways = [1] + [0] * n
    for part in parts:
        for total in range(part, n + 1):
            ways[total] += ways[total - part]
    return ways[n]


def distinct_partitions(n, parts):
    """Number of ways to write n as a sum of different ones of these parts."""
    ways = [1] + [0] * n
    for part in parts:
        for total in range(n, part - 1, -1):
            ways[total] += ways[total - part]
    return ways[n]


def stirling1(n, k):
    """Permutations of n objects with k cycles."""
    row = [1]
    for m in range(n):
        row = [m * here + before for here, before in zip([*row, 0], [0, *row], strict=True)]
    return row[k] if k <= n else 0


def stirling2(n, k):
    """Ways to split n labelled objects into k nonempty blocks."""
    row = [1]
    for _ in range(n):
        row = [j * here + before for j, (here, before) in enumerate(zip([*row, 0], [0, *row], strict=True))]
    return row[k] if k <= n else 0


def convolve_power(terms, power, n):
    """Coefficient of x^n in the given power of the polynomial with these coefficients."""
    result = [1]
    for _ in range(power):
        product = [0] * min(n + 1, len(result) + len(terms) - 1)
        for i, x in enumerate(result):
            for j, y in enumerate(terms[: n + 1 - i]):
                product[i + j] += x * y
        result = product
    return result[n] if n < len(result) else 0
