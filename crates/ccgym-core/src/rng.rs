//! Named random streams from one root seed.
//!
//! Every consumer (a loss element, a scheme, a source) draws from its own named stream. Adding a consumer therefore
//! never shifts the numbers of another one, and the same root seed gives the same bytes on one thread or many.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// One random stream. Cloning it clones its position.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// Make the stream `name`, number `index`, of root `seed`.
    #[must_use]
    pub fn stream(seed: u64, name: &str, index: u64) -> Self {
        // FNV-1a over the name, then two rounds of SplitMix64 so that close seeds and indices do not correlate.
        let mut h: u64 = 0xcbf2_9ce4_8422_2325;
        for b in name.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mixed = splitmix(splitmix(seed ^ h).wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// Return 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// Return a uniform number in [0, 1), 53 bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
    /// Return a uniform integer in [0, n); zero if `n` is zero. Lemire's multiply-shift; its bias is below n/2⁶⁴.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }
    /// Return true with probability `p`.
    #[inline]
    pub fn bernoulli(&mut self, p: f64) -> bool {
        self.uniform() < p
    }
    /// Return an exponential number with the given mean.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }
    /// Return a standard normal number (Box–Muller, one value per call so that the stream position stays simple).
    #[inline]
    pub fn normal(&mut self) -> f64 {
        let u = 1.0 - self.uniform();
        let v = self.uniform();
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

const fn splitmix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_reproducible_and_distinct() {
        let draw = |seed, name, index| {
            let mut r = Rng::stream(seed, name, index);
            (0..4).map(|_| r.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, "loss", 0), draw(1, "loss", 0));
        assert_ne!(draw(1, "loss", 0), draw(1, "loss", 1));
        assert_ne!(draw(1, "loss", 0), draw(2, "loss", 0));
        assert_ne!(draw(1, "loss", 0), draw(1, "delay", 0));
    }

    #[test]
    fn moments_are_right() {
        let mut r = Rng::stream(7, "moments", 0);
        let n = 200_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        assert!((mean(&mut || r.uniform()) - 0.5).abs() < 0.005);
        assert!((mean(&mut || r.exponential(3.0)) - 3.0).abs() < 0.05);
        assert!(mean(&mut || r.normal()).abs() < 0.01);
        assert!((mean(&mut || r.below(10) as f64) - 4.5).abs() < 0.03);
        assert!((mean(&mut || f64::from(u8::from(r.bernoulli(0.06)))) - 0.06).abs() < 0.003);
    }
}
