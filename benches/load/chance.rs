//! Numbers by chance from a seed, the same in every run: xorshift with a multiplied output.

/// A generator.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// The generator of a seed and of what it is for, so that two uses share no numbers.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        for byte in purpose.bytes() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        let mut chance = Self(state | 1);
        for _ in 0..8 {
            chance.next();
        }
        chance
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&mut self, end: usize) -> usize {
        ((self.unit() * end as f64) as usize).min(end.saturating_sub(1))
    }

    /// The gap before the next arrival when `rate` come in a second on average and none knows of
    /// the others.
    pub fn gap(&mut self, rate: f64) -> f64 {
        -(1.0 - self.unit()).ln() / rate
    }
}
