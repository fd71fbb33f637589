//! The elements of one direction, and their properties that a driver needs.

use ccgym_core::packet::{Datagram, Ecn};
use ccgym_core::schema;
use ccgym_core::units::{TimeSpan, Timestamp};
use ccgym_core::Error;

use crate::element::{Counters, Fate, PathElement, Release};
use crate::instantiate::{build_element, Element, Traces};
use crate::spec::{ElementSpec, Param};

/// Max mean number of copies of a packet.
const MAX_COPIES: f64 = 16.0;

/// Check that the copies of one packet over these elements, which are at `place`, fit into memory.
///
/// # Errors
/// They make too many packets of one, at the max rate of each that duplicates.
pub fn check_copies<'a>(place: &str, elements: impl Iterator<Item = &'a ElementSpec>) -> Result<(), Error> {
    let factor = |element: &ElementSpec| match element {
        ElementSpec::Duplicate { probability } => 1.0 + probability.steps().iter().map(|(_, p)| *p).fold(0.0, f64::max),
        _ => 1.0,
    };
    let copies: f64 = elements.map(factor).product();
    let expected = format!("at most {MAX_COPIES} on average; let fewer elements duplicate, or more rarely");
    Error::ensure(copies <= MAX_COPIES, place, format!("{copies:.0} copies of a packet"), expected)
}

/// The elements of one direction.
#[derive(Clone)]
pub struct Chain {
    /// Elements in the order in which packets cross them, without the constant delays in `tail`.
    pub elements: Vec<Element>,
    /// Kind of each, including those removed.
    pub kinds: Vec<String>,
    /// True if a packet must wait for its time before it enters stage i (the endpoint included).
    pub synchronise: Vec<bool>,
    /// The elements that may hold packets.
    pub holders: Vec<usize>,
    /// True if no stage synchronises, holds or duplicates: packets cross the whole chain at once.
    pub eager: bool,
    /// Sum of the constant delays at the end of the chain, which are removed from `elements`.
    pub tail: TimeSpan,
    /// Packets and bytes that crossed the chain: the counters of the removed delays.
    pub crossed: (u64, u64),
    /// Index of the first link.
    pub bottleneck: Option<usize>,
}

impl Chain {
    /// Build the elements of one direction; their random streams are numbered from `first_index` on.
    ///
    /// # Errors
    /// An element that cannot be built, as `[INDEX]: ` before the place.
    pub fn new(specs: &[ElementSpec], seed: u64, first_index: u64, traces: Traces<'_>) -> Result<Self, Error> {
        let mut elements = Vec::with_capacity(specs.len());
        for (i, spec) in specs.iter().enumerate() {
            let built = build_element(spec, seed, first_index + i as u64, traces);
            elements.push(built.map_err(|error| error.within(format_args!("[{i}]")))?);
        }
        check_copies("", specs.iter())?;
        let holders: Vec<usize> = (0..elements.len()).filter(|&i| elements[i].may_hold()).collect();
        let synchronise: Vec<bool> =
            (0..=elements.len()).map(|i| i > 0 && !elements[i - 1].preserves_order() || holders.contains(&i)).collect();
        let duplicates = elements.iter().any(PathElement::may_duplicate);
        let eager = !synchronise.contains(&true) && holders.is_empty() && !duplicates;
        let mut tail = TimeSpan::ZERO;
        while let Some(delay) = constant_delay(&specs[..elements.len()]) {
            elements.pop();
            tail = tail + delay;
        }
        Ok(Self {
            bottleneck: specs.iter().position(|s| matches!(s, ElementSpec::Link { .. })),
            kinds: specs.iter().map(schema::kind).collect(),
            elements,
            eager,
            tail,
            crossed: (0, 0),
            synchronise,
            holders,
        })
    }

    /// True if it is one link that holds packets, perhaps with constant delays behind it.
    pub fn is_held_link(&self) -> bool {
        matches!(self.elements.as_slice(), [link] if link.may_hold())
    }

    /// Carry a packet through an eager chain; returns when it leaves, or, as an error, when an element drops it.
    #[inline(always)]
    pub fn cross(&mut self, mut at: Timestamp, datagram: &mut Datagram) -> Result<Timestamp, Timestamp> {
        // Nothing, or a link alone: the most frequent chains.
        match self.elements.as_mut_slice() {
            [] => {}
            [Element::RateFifo(link)] => match link.carry(at, datagram) {
                Fate::Forward(t) => at = t,
                _ => return Err(at),
            },
            _ => (at, datagram.ecn) = self.cross_elements(at, *datagram)?,
        }
        Ok(self.leave(at, datagram.size))
    }

    /// Carry a packet through the elements of an eager chain. Takes a copy, so that the caller's may stay in registers.
    #[inline(never)]
    fn cross_elements(&mut self, mut at: Timestamp, mut datagram: Datagram) -> Result<(Timestamp, Ecn), Timestamp> {
        for element in &mut self.elements {
            match element.offer(at, &mut datagram) {
                Fate::Forward(t) => at = t,
                Fate::Duplicate(_) | Fate::Drop | Fate::Hold => return Err(at),
            }
        }
        Ok((at, datagram.ecn))
    }

    /// Count a packet that has crossed the elements at `at`, and return when it leaves the chain.
    #[inline(always)]
    pub fn leave(&mut self, at: Timestamp, size: u32) -> Timestamp {
        self.crossed.0 += 1;
        self.crossed.1 += u64::from(size);
        at + self.tail
    }

    /// Return the counters of all elements, including those removed.
    pub fn counters(&self) -> Vec<(String, Counters)> {
        let (packets, bytes) = self.crossed;
        let taken_out =
            Counters { arrived: packets, forwarded: packets, forwarded_bytes: bytes, ..Counters::default() };
        let counters = self.elements.iter().map(PathElement::counters).chain(std::iter::repeat(taken_out));
        self.kinds.iter().cloned().zip(counters).collect()
    }

    /// Return the bytes of waiting packets, and of recorded events.
    pub fn held_bytes(&self) -> (usize, usize) {
        self.elements.iter().map(PathElement::held_bytes).fold((0, 0), |(p, e), (q, f)| (p + q, e + f))
    }

    /// Return the next packet that an element releases by `now`, and the index of that.
    #[inline(always)]
    pub fn release(&mut self, now: Timestamp) -> Option<(usize, Release)> {
        let elements = self.elements.as_mut_slice();
        // The most frequent chain. It is asked when it is due.
        if let [Element::RateHeld(link)] = elements {
            return link.release(now).map(|release| (0, release));
        }
        self.holders.iter().find_map(|&stage| {
            let element = &mut elements[stage];
            let release = if element.next_event() <= now { element.release(now) } else { None };
            Some((stage, release?))
        })
    }

    /// Return the next event of an element that holds packets.
    #[inline(always)]
    pub fn next_event(&self) -> Timestamp {
        if let [Element::RateHeld(link)] = self.elements.as_slice() {
            return link.next_event();
        }
        self.holders.iter().fold(Timestamp::NEVER, |due, &stage| due.min(self.elements[stage].next_event()))
    }
}

/// Return the delay that the last element adds to every packet, if it is constant.
fn constant_delay(specs: &[ElementSpec]) -> Option<TimeSpan> {
    match specs.last() {
        Some(ElementSpec::Delay { delay: Param::Constant(delay), tick: TimeSpan::ZERO }) => Some(*delay),
        _ => None,
    }
}
