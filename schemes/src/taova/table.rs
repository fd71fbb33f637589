//! Rule tables: a tree of boxes in the memory's space, with one rule per leaf; the format of Remy's `dna` files.

use ccgym_core::Error;
use prost::bytes::Bytes;
use prost::Message;

use super::memory::Point;

/// Bounds that a file leaves out; also those of the whole space (`MAX_MEMORY` in Remy).
const SPACE: (f64, f64) = (0.0, 163_840.0);
/// Value for memories beyond the space, just inside: Remy's programs abort there.
const JUST_INSIDE: f64 = 163_839.999;
/// Max number of levels.
const MAX_DEPTH: usize = 64;
/// Max number of children: checking more for gaps would take long.
const MAX_CHILDREN: usize = 64;
/// Max window of a rule, packets.
pub const MAX_WINDOW: u64 = 1_000_000;

/// Half-open intervals on the four axes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Domain {
    lower: Point,
    upper: Point,
}

impl Domain {
    const WHOLE: Self = Self { lower: [SPACE.0; 4], upper: [SPACE.1; 4] };

    fn contains(&self, point: &Point) -> bool {
        (0..4).all(|axis| self.lower[axis] <= point[axis] && point[axis] < self.upper[axis])
    }
    fn contains_box(&self, other: &Self) -> bool {
        (0..4).all(|axis| self.lower[axis] <= other.lower[axis] && other.upper[axis] <= self.upper[axis])
    }
}

/// Rule of a leaf (a *whisker* in Remy's words).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Packets added to the window.
    pub increment: i64,
    /// Factor on the window before that.
    pub multiple: f64,
    /// Min time between departures, milliseconds.
    pub intersend_ms: f64,
}

impl Rule {
    /// Return the window after `window`, packets.
    pub fn window(&self, window: u64) -> u64 {
        (window as f64 * self.multiple + self.increment as f64).clamp(0.0, MAX_WINDOW as f64) as u64
    }
}

#[derive(Message)]
struct WhiskerTree {
    #[prost(message, optional, tag = "1")]
    domain: Option<MemoryRange>,
    #[prost(bytes = "bytes", repeated, tag = "2")]
    children: Vec<Bytes>,
    #[prost(message, optional, tag = "3")]
    leaf: Option<Whisker>,
}

#[derive(Message)]
struct Whisker {
    #[prost(sint64, optional, tag = "31")]
    increment: Option<i64>,
    #[prost(double, optional, tag = "32")]
    multiple: Option<f64>,
    #[prost(double, optional, tag = "33")]
    intersend_ms: Option<f64>,
    #[prost(message, optional, tag = "34")]
    domain: Option<MemoryRange>,
}

#[derive(Message)]
struct MemoryRange {
    #[prost(message, optional, tag = "11")]
    lower: Option<Bound>,
    #[prost(message, optional, tag = "12")]
    upper: Option<Bound>,
}

/// A corner of a range: a memory (`Memory` in Remy).
#[derive(Message)]
struct Bound {
    #[prost(double, optional, tag = "21")]
    send: Option<f64>,
    #[prost(double, optional, tag = "22")]
    receive: Option<f64>,
    #[prost(double, optional, tag = "23")]
    rtt_ratio: Option<f64>,
    #[prost(double, optional, tag = "24")]
    slow_receive: Option<f64>,
}

impl Bound {
    fn point(&self, missing: f64) -> Point {
        [self.send, self.receive, self.rtt_ratio, self.slow_receive].map(|value| value.unwrap_or(missing))
    }
}

#[derive(Clone, Debug)]
enum Node {
    /// Index of a rule.
    Leaf(usize),
    Branch(Vec<(Domain, Node)>),
}

/// A checked table: each memory has exactly one rule.
#[derive(Clone, Debug)]
pub struct Table {
    root: Node,
    rules: Vec<Rule>,
}

impl Table {
    /// Read a table.
    ///
    /// # Errors
    /// The bytes are not a table, or it has gaps or overlaps.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader { rules: Vec::new(), place: Vec::new() };
        let (domain, root) = reader.node(Bytes::copy_from_slice(bytes))?;
        if !domain.contains_box(&Domain::WHOLE) {
            let found = format!("a domain from {:?} to {:?}, not the whole space,", domain.lower, domain.upper);
            return Err(reader.error(found));
        }
        Ok(Self { root, rules: reader.rules })
    }

    /// Find the leaf for a memory; returns its number in the order of the file, and its rule.
    pub fn look_up(&self, memory: &Point) -> (usize, Rule) {
        let point = memory.map(|value| value.clamp(SPACE.0, JUST_INSIDE));
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(index) => return (*index, self.rules[*index]),
                // Decoding checked that one child holds the point.
                Node::Branch(children) => {
                    let child = children.iter().find(|(domain, _)| domain.contains(&point));
                    node = &child.unwrap_or(&children[0]).1;
                }
            }
        }
    }
}

struct Reader {
    rules: Vec<Rule>,
    place: Vec<usize>,
}

impl Reader {
    fn error(&self, found: impl Into<String>) -> Error {
        let numbers: Vec<_> = self.place.iter().map(usize::to_string).collect();
        let place = if numbers.is_empty() { "the root".to_owned() } else { format!("node {}", numbers.join(".")) };
        Error::of("parameter-invalid", place, found.into())
    }
    fn decode<M: Message + Default>(&self, bytes: Bytes) -> Result<M, Error> {
        M::decode(bytes).map_err(|error| self.error(format!("damage ({error})")))
    }

    fn node(&mut self, bytes: Bytes) -> Result<(Domain, Node), Error> {
        if self.place.len() > MAX_DEPTH {
            return Err(self.error(format!("more than {MAX_DEPTH} levels")));
        }
        let tree: WhiskerTree = self.decode(bytes)?;
        let domain = tree.domain.map(|range| self.domain(&range)).transpose()?;
        let mut children = Vec::new();
        for child in tree.children {
            self.place.push(children.len() + 1);
            children.push(self.node(child)?);
            self.place.pop();
        }
        match tree.leaf.map(|whisker| self.leaf(&whisker)).transpose()? {
            Some((rule, of_rule)) if children.is_empty() => {
                self.rules.push(rule);
                Ok((domain.or(of_rule).unwrap_or(Domain::WHOLE), Node::Leaf(self.rules.len() - 1)))
            }
            Some(_) => Err(self.error("both a rule and children")),
            None if children.is_empty() => Err(self.error("neither a rule nor children")),
            None => {
                let domain = domain.unwrap_or(Domain::WHOLE);
                self.partition(&domain, &children)?;
                Ok((domain, Node::Branch(children)))
            }
        }
    }

    /// Check that the children divide `domain`: each corner made of their bounds must lie in exactly one of them.
    fn partition(&self, domain: &Domain, children: &[(Domain, Node)]) -> Result<(), Error> {
        if children.len() > MAX_CHILDREN {
            return Err(self.error(format!("more than {MAX_CHILDREN} children")));
        }
        if let Some(place) = children.iter().position(|(child, _)| !domain.contains_box(child)) {
            return Err(self.error(format!("child {}, which is not within its parent,", place + 1)));
        }
        let bounds: [Vec<f64>; 4] = std::array::from_fn(|axis| {
            let mut values: Vec<_> = children.iter().map(|(child, _)| child.lower[axis]).collect();
            values.push(domain.lower[axis]);
            // An upper bound that is not a lower bound of another begins a gap.
            values.extend(children.iter().map(|(child, _)| child.upper[axis]).filter(|&v| v < domain.upper[axis]));
            values.sort_by(f64::total_cmp);
            values.dedup();
            values
        });
        let cells: usize = bounds.iter().map(Vec::len).product();
        for cell in 0..cells {
            let mut rest = cell;
            let corner: Point = std::array::from_fn(|axis| {
                let value = bounds[axis][rest % bounds[axis].len()];
                rest /= bounds[axis].len();
                value
            });
            let holders = children.iter().filter(|(child, _)| child.contains(&corner)).count();
            if holders != 1 {
                return Err(self.error(format!("{holders} children for the memory {corner:?}")));
            }
        }
        Ok(())
    }

    fn leaf(&self, whisker: &Whisker) -> Result<(Rule, Option<Domain>), Error> {
        let domain = whisker.domain.as_ref().map(|range| self.domain(range)).transpose()?;
        let (Some(increment), Some(multiple), Some(intersend_ms)) =
            (whisker.increment, whisker.multiple, whisker.intersend_ms)
        else {
            return Err(self.error("a rule without its increment, multiple or gap"));
        };
        if increment.unsigned_abs() > MAX_WINDOW || !(0.0..=1e6).contains(&multiple) {
            return Err(self.error(format!("a window of {multiple}·W + {increment}")));
        }
        if !(0.0..=1e6).contains(&intersend_ms) {
            return Err(self.error(format!("a gap of {intersend_ms} ms")));
        }
        Ok((Rule { increment, multiple, intersend_ms }, domain))
    }

    fn domain(&self, range: &MemoryRange) -> Result<Domain, Error> {
        let bound = |bound: &Option<Bound>, missing| bound.as_ref().map_or([missing; 4], |bound| bound.point(missing));
        let domain = Domain { lower: bound(&range.lower, SPACE.0), upper: bound(&range.upper, SPACE.1) };
        let finite = domain.lower.iter().chain(&domain.upper).all(|value| value.is_finite());
        if finite && (0..4).all(|axis| domain.lower[axis] < domain.upper[axis]) {
            Ok(domain)
        } else {
            Err(self.error(format!("an empty domain from {:?} to {:?}", domain.lower, domain.upper)))
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::wire::{self, varint};

    fn number(field: u64, value: f64) -> Vec<u8> {
        [varint((field << 3) | 1), value.to_le_bytes().to_vec()].concat()
    }
    fn message(field: u64, parts: &[Vec<u8>]) -> Vec<u8> {
        wire::field(field, &parts.concat())
    }
    fn bound(field: u64, point: &Point) -> Vec<u8> {
        let of_file = [0, 1, 2, 3].map(|axis| number(21 + axis as u64, point[axis]));
        message(field, &of_file)
    }
    fn range(field: u64, lower: &Point, upper: &Point) -> Vec<u8> {
        message(field, &[bound(11, lower), bound(12, upper)])
    }
    fn leaf((increment, multiple, gap): (i64, f64, f64)) -> Vec<u8> {
        let zigzag = ((increment << 1) ^ (increment >> 63)) as u64;
        let rule = [varint(31 << 3), varint(zigzag), number(32, multiple), number(33, gap)];
        message(3, &rule)
    }

    const END: f64 = SPACE.1;

    /// Make a tree with leaves of the 2014 table for 100x: at the start, on a fast path without a queue, and with one.
    pub fn hand_made() -> Vec<u8> {
        let inner = [
            range(1, &[0.05, 0.0, 0.0, 0.0], &[END; 4]),
            message(2, &[range(1, &[0.05, 0.0, 0.0, 0.0], &[END, END, 1.05, END]), leaf((165, 0.92, 0.1112))]),
            message(2, &[range(1, &[0.05, 0.0, 1.05, 0.0], &[END; 4]), leaf((-3, 0.85, 0.1444))]),
        ];
        let first = [range(1, &[0.0; 4], &[0.05, END, END, END]), leaf((60, 0.01, 0.292))];
        [range(1, &[0.0; 4], &[END; 4]), message(2, &first), message(2, &inner), message(4, &[])].concat()
    }

    #[test]
    fn leaves_by_memory() {
        let table = Table::decode(&hand_made()).unwrap();
        for (memory, number, expected) in [
            ([0.0; 4], 0, (60, 0.01, 0.292)),
            ([0.0499, 9.0, 9.0, 9.0], 0, (60, 0.01, 0.292)),
            ([0.05, 0.0, 0.0, 0.0], 1, (165, 0.92, 0.1112)),
            ([0.1175, 0.1175, 1.0, 0.1175], 1, (165, 0.92, 0.1112)),
            ([0.1175, 0.1175, 1.05, 0.1175], 2, (-3, 0.85, 0.1444)),
            ([1e9, 1e9, 1e9, 1e9], 2, (-3, 0.85, 0.1444)),
        ] {
            let (index, rule) = table.look_up(&memory);
            let found = (rule.increment, rule.multiple, rule.intersend_ms);
            assert_eq!((index, found), (number, expected), "{memory:?}");
        }
    }

    #[test]
    fn windows_are_truncated_and_bounded() {
        for ((increment, multiple), window, expected) in [
            ((60, 0.01), 0, 60),
            ((60, 0.01), 99, 60),
            ((60, 0.01), 100, 61),
            ((-3, 0.85), 2, 0),
            ((-3, 0.85), 100, 82),
            ((1_000_000, 1.0), 5, MAX_WINDOW),
            ((0, 1e6), MAX_WINDOW, MAX_WINDOW),
        ] {
            let rule = Rule { increment, multiple, intersend_ms: 1.0 };
            assert_eq!(rule.window(window), expected, "{rule:?} of {window}");
        }
        // Applied forever, a rule leads to increment/(1−multiple), here 60/0.99, except for the truncation.
        let rule = Rule { increment: 10, multiple: 0.9, intersend_ms: 1.0 };
        let held = (0..1000).fold(0, |window, _| rule.window(window));
        assert!((91..=100).contains(&held), "{held}");
    }

    #[test]
    fn damaged_files_say_what_and_where() {
        let whole = hand_made();
        for end in 0..whole.len() {
            // Only the empty configuration at the end may be missing.
            assert_eq!(Table::decode(&whole[..end]).is_ok(), end == whole.len() - 2, "{end} bytes");
        }
        let rule = leaf((1, 1.0, 1.0));
        let half = |from: f64, to: f64| {
            let (mut lower, mut upper) = ([0.0; 4], [END; 4]);
            (lower[2], upper[2]) = (from, to);
            message(2, &[range(1, &lower, &upper), rule.clone()])
        };
        let small = range(1, &[0.0; 4], &[9.0; 4]);
        let deepest = format!("node {}", ["1"; 65].join("."));
        let deep = (0..80).fold(rule.clone(), |tree, _| message(2, &[tree]));
        for (file, place) in [
            (vec![], "the root"),
            (b"not a table\n".to_vec(), "the root"),
            ([half(0.0, 1.0), half(2.0, END)].concat(), "the root"),
            ([half(0.0, 2.0), half(1.0, END)].concat(), "the root"),
            ([rule.clone(), half(0.0, END)].concat(), "the root"),
            ([small.clone(), rule.clone()].concat(), "the root"),
            ([small, half(0.0, END)].concat(), "the root"),
            (half(1.0, 1.0), "node 1"),
            (message(2, &[message(3, &[])]), "node 1"),
            (leaf((1, f64::NAN, 1.0)), "the root"),
            (leaf((1, -0.5, 1.0)), "the root"),
            (leaf((i64::MIN, 1.0, 1.0)), "the root"),
            (leaf((1, 1.0, -1.0)), "the root"),
            (message(3, &[message(31, &[])]), "the root"),
            (deep, &deepest),
            (vec![half(0.0, END); 65].concat(), "the root"),
        ] {
            assert_eq!(Table::decode(&file).unwrap_err().place, place);
        }
    }

    #[test]
    fn missing_bounds_are_those_of_the_space() {
        let open = message(2, &[message(1, &[message(12, &[number(23, 1.5)])]), leaf((1, 1.0, 1.0))]);
        let above = message(2, &[message(1, &[message(11, &[number(23, 1.5)])]), leaf((2, 1.0, 1.0))]);
        let table = Table::decode(&[open, above].concat()).unwrap();
        assert_eq!(table.look_up(&[5.0, 5.0, 1.49, 5.0]).1.increment, 1);
        assert_eq!(table.look_up(&[5.0, 5.0, 1.5, 5.0]).1.increment, 2);
    }
}
