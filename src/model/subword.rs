#[derive(Debug, Clone)]
pub struct NGrams {
    pub min: u32,
    pub max: u32,
    pub buckets: u64,
}
impl NGrams {
    pub fn buckets(&self, _: &str, _: impl FnMut(u64)) {}
}
pub fn wordpieces(_: &str, _: &str, _: impl FnMut(&str) -> Option<u32>, _: &mut Vec<u32>) -> bool {
    false
}
