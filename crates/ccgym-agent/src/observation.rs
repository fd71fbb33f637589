//! The observation: the features of the latest intervals, oldest first, in one row of float32.
//!
//! A slot is one interval. The slot of age k (0 is the newest, at the end) has, in order, the features whose history
//! includes it, then the action of the interval.

use super::action::ActionKind;
use super::expressions::{Expressions, Values};
use super::features::Feature;
use super::memory::Memory;
use super::spec::{ObservationSpec, PreviousAction};
use ccgym_core::Error;

/// Max numbers in an observation.
const MAX_SIZE: usize = 1 << 20;

/// The shape of an observation.
#[derive(Clone)]
pub(crate) struct Layout {
    /// Features, in order.
    pub features: Vec<Feature>,
    /// Form of the previous action.
    pub previous: PreviousAction,
    /// Numbers that show the previous action.
    actions: usize,
    initial_action: Option<f64>,
    /// Columns of the observation.
    pub columns: Vec<Column>,
    shift: Shift,
    action_bounds: [f64; 2],
}

/// One number of the observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// Age of its interval.
    pub age: usize,
    /// Content.
    pub content: Content,
}

/// Content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A feature, by index.
    Feature(usize),
    /// A part of the previous action, by index.
    Action(usize),
}

/// Movement of the columns when an interval is added.
#[derive(Clone)]
enum Shift {
    /// All by this many to the left.
    By(usize),
    /// Each from the given position, in order.
    From(Vec<(u32, u32)>),
}

impl Layout {
    /// Lay out `spec` for an agent whose actions are of `kind`.
    pub(crate) fn new(spec: &ObservationSpec, kind: &ActionKind, expressions: &mut Expressions) -> Result<Self, Error> {
        let place = "observation";
        let history = spec.history;
        let mut features = Vec::new();
        for (i, feature) in spec.features.iter().enumerate() {
            features.push(Feature::new(feature, &format!("{place}.features[{i}]"), history, expressions)?);
        }
        let (actions, action_bounds) = match (spec.previous_action, kind) {
            (PreviousAction::None, _) => (0, [0.0, 0.0]),
            (PreviousAction::Value, ActionKind::Discrete(n)) => (1, [0.0, (*n - 1) as f64]),
            (PreviousAction::Value, ActionKind::Box { size, low, high }) => {
                (*size, [f64::from(*low).min(0.0), f64::from(*high).max(0.0)])
            }
            (PreviousAction::OneHot, ActionKind::Discrete(n)) => (*n, [0.0, 1.0]),
            (PreviousAction::OneHot, ActionKind::Box { .. }) => {
                let expected = "value: one_hot is for actions that are one of several";
                return Err(Error::new("observation.previous_action", "one_hot", expected));
            }
        };
        if let Some(initial) = spec.initial_action {
            let fits = match kind {
                ActionKind::Discrete(n) => initial >= 0.0 && initial.fract() == 0.0 && initial < *n as f64,
                ActionKind::Box { low, high, .. } => initial >= f64::from(*low) && initial <= f64::from(*high),
            };
            Error::ensure(fits, "observation.initial_action", initial, "an action that can be taken")?;
        }
        Error::ensure(
            !features.is_empty() || actions > 0,
            "observation.features",
            "none",
            "at least one feature, or the previous action",
        )?;
        let size = (features.len() + actions).saturating_mul(history as usize);
        Error::ensure(size <= MAX_SIZE, "observation.history", history, "at most 2^20 numbers in all")?;

        let mut columns = Vec::new();
        for age in (0..history as usize).rev() {
            let seen = features.iter().enumerate().filter(|(_, f)| f.history > age);
            columns.extend(seen.map(|(i, _)| Column { age, content: Content::Feature(i) }));
            columns.extend((0..actions).map(|i| Column { age, content: Content::Action(i) }));
        }
        let shift = if features.iter().all(|f| f.history == history as usize) {
            Shift::By(features.len() + actions)
        } else {
            let younger = |c: &Column| columns.iter().position(|d| d.age + 1 == c.age && d.content == c.content);
            let moves = columns.iter().enumerate().filter_map(|(to, c)| Some((to as u32, younger(c)? as u32)));
            Shift::From(moves.collect())
        };
        let (previous, initial_action) = (spec.previous_action, spec.initial_action);
        Ok(Self { features, previous, actions, initial_action, columns, shift, action_bounds })
    }

    /// Return the number of columns.
    pub(crate) fn size(&self) -> usize {
        self.columns.len()
    }

    /// Return min and max of a column.
    pub(crate) fn bounds(&self, column: &Column) -> [f64; 2] {
        match column.content {
            Content::Feature(i) => self.features[i].clip,
            Content::Action(_) => self.action_bounds,
        }
    }

    /// Return part `i` of the previous action.
    fn action(&self, i: usize, action: Option<[f64; 2]>) -> f32 {
        let shown = action.or(self.initial_action.map(|a| [a, a]));
        match (self.previous, shown) {
            (_, None) => 0.0,
            (PreviousAction::OneHot, Some([index, _])) => f32::from(u8::from(index == i as f64)),
            (_, Some(numbers)) => numbers[i].clamp(self.action_bounds[0], self.action_bounds[1]) as f32,
        }
    }
}

/// The observation of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Observation {
    flat: Vec<f32>,
}

impl Observation {
    pub(crate) fn new(layout: &Layout) -> Self {
        let empty = |column: &Column| match column.content {
            Content::Feature(i) => layout.features[i].empty as f32,
            Content::Action(i) => layout.action(i, None),
        };
        Self { flat: layout.columns.iter().map(empty).collect() }
    }

    /// Record the interval of `values`.
    pub(crate) fn push(&mut self, layout: &Layout, values: &Values, memory: &Memory) {
        match &layout.shift {
            Shift::By(width) => self.flat.copy_within(*width.., 0),
            Shift::From(moves) => {
                for (to, from) in moves {
                    self.flat[*to as usize] = self.flat[*from as usize];
                }
            }
        }
        let newest = self.flat.len() - layout.features.len() - layout.actions;
        let (shown, actions) = self.flat[newest..].split_at_mut(layout.features.len());
        for (feature, number) in layout.features.iter().zip(shown) {
            *number = feature.compute(values);
        }
        for (i, number) in actions.iter_mut().enumerate() {
            *number = layout.action(i, memory.action);
        }
    }

    /// Return all numbers, oldest interval first.
    pub(crate) fn flat(&self) -> &[f32] {
        &self.flat
    }
}
