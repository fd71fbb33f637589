//! The elements that packets of one direction cross, and what a driver must know to carry packets through them.

use ccgym_core::packet::Datagram;
use ccgym_core::units::{TimeSpan, Timestamp};
use ccgym_core::SpecError;

use crate::element::{Counters, Fate, PathElement};
use crate::instantiate::{build_element, Element, Traces};
use crate::spec::{ElementSpec, Param};

/// More copies of a packet, on average, are refused.
const MAX_COPIES: f64 = 16.0;

/// Check that what one packet becomes on its way over these elements, which stand at `place`, fits into memory.
///
/// # Errors
/// They make too many packets of one, if all that duplicate do so as often as they ever do.
pub fn check_copies<'a>(place: &str, elements: impl Iterator<Item = &'a ElementSpec>) -> Result<(), SpecError> {
    let factor = |element: &ElementSpec| match element {
        ElementSpec::Duplicate { probability } => 1.0 + probability.steps().iter().map(|(_, p)| *p).fold(0.0, f64::max),
        _ => 1.0,
    };
    let copies: f64 = elements.map(factor).product();
    let expected = format!("at most {MAX_COPIES} on average; let fewer elements duplicate, or more rarely");
    SpecError::ensure(copies <= MAX_COPIES, place, format!("{copies:.0} copies of a packet"), expected)
}

/// The elements of one direction.
#[derive(Clone)]
pub struct Chain {
    /// In the order in which packets cross them, without the constant delays in `tail`.
    pub elements: Vec<Element>,
    /// What each is, those taken out included.
    pub kinds: Vec<&'static str>,
    /// Whether a packet must wait for its time before entering stage i (the endpoint included).
    pub synchronise: Vec<bool>,
    /// Whether element i may hold packets.
    pub holds: Vec<bool>,
    /// Whether no stage synchronises, holds or duplicates: packets cross the whole chain at once.
    pub eager: bool,
    /// What constant delays at the end of the chain add up to. They are taken out of `elements`.
    pub tail: TimeSpan,
    /// Packets and bytes that crossed the chain: what the delays taken out would have counted.
    pub crossed: (u64, u64),
    /// The first link.
    pub bottleneck: Option<usize>,
}

impl Chain {
    /// Build the elements of one direction; their random streams are numbered from `first_index` on.
    ///
    /// # Errors
    /// Which element cannot be built, as `[INDEX]: ` before the place, and why.
    pub fn new(specs: &[ElementSpec], seed: u64, first_index: u64, traces: Traces<'_>) -> Result<Self, SpecError> {
        let mut elements = Vec::with_capacity(specs.len());
        for (i, spec) in specs.iter().enumerate() {
            let built = build_element(spec, seed, first_index + i as u64, traces);
            elements.push(built.map_err(|error| error.within(format_args!("[{i}]")))?);
        }
        check_copies("", specs.iter())?;
        let holds: Vec<bool> = elements.iter().map(PathElement::may_hold).collect();
        let synchronise: Vec<bool> = (0..=elements.len())
            .map(|i| {
                let reordered = i > 0 && !elements[i - 1].preserves_order();
                reordered || holds.get(i).copied().unwrap_or(false)
            })
            .collect();
        let duplicates = elements.iter().any(PathElement::may_duplicate);
        let eager = !synchronise.contains(&true) && !holds.contains(&true) && !duplicates;
        let mut tail = TimeSpan::ZERO;
        while let Some(delay) = constant_delay(&specs[..elements.len()]) {
            elements.pop();
            tail = tail + delay;
        }
        Ok(Self {
            bottleneck: specs.iter().position(|s| matches!(s, ElementSpec::Link { .. })),
            kinds: specs.iter().map(ElementSpec::kind).collect(),
            elements,
            eager,
            tail,
            crossed: (0, 0),
            synchronise,
            holds,
        })
    }

    /// Through an eager chain: when the packet leaves it, or, as an error, when an element drops it.
    #[inline(always)]
    pub fn cross(&mut self, mut at: Timestamp, datagram: &mut Datagram) -> Result<Timestamp, Timestamp> {
        for element in &mut self.elements {
            match element.offer(at, datagram) {
                Fate::Forward(t) => at = t,
                Fate::Duplicate(_) | Fate::Drop | Fate::Hold => return Err(at),
            }
        }
        Ok(self.leave(at, datagram.size))
    }

    /// When a packet that has crossed the elements at `at` has left the chain.
    #[inline(always)]
    pub fn leave(&mut self, at: Timestamp, size: u32) -> Timestamp {
        self.crossed.0 += 1;
        self.crossed.1 += u64::from(size);
        at + self.tail
    }

    /// Counters of all elements, those taken out included.
    pub fn counters(&self) -> Vec<(String, Counters)> {
        let (packets, bytes) = self.crossed;
        let taken_out =
            Counters { arrived: packets, forwarded: packets, forwarded_bytes: bytes, ..Counters::default() };
        let counters = self.elements.iter().map(PathElement::counters).chain(std::iter::repeat(taken_out));
        self.kinds.iter().map(|kind| (*kind).to_owned()).zip(counters).collect()
    }

    /// Bytes that waiting packets and recorded events take: the two apart.
    pub fn held_bytes(&self) -> (usize, usize) {
        self.elements.iter().map(PathElement::held_bytes).fold((0, 0), |(p, e), (q, f)| (p + q, e + f))
    }

    /// When an element that holds packets has something to do.
    pub fn next_event(&self) -> Timestamp {
        let holding = self.elements.iter().zip(&self.holds).filter(|(_, holds)| **holds);
        holding.map(|(element, _)| element.next_event()).min().unwrap_or(Timestamp::NEVER)
    }
}

/// The delay that the last element adds to every packet alike, if it does.
fn constant_delay(specs: &[ElementSpec]) -> Option<TimeSpan> {
    match specs.last() {
        Some(ElementSpec::Delay { delay: Param::Constant(delay), tick: TimeSpan::ZERO }) => Some(*delay),
        _ => None,
    }
}
