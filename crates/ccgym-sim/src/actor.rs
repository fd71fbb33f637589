//! A policy in training: a small network that gives the mean of a Gaussian.
//!
//! The mean is float64, rounded to float32 at the end, as in an exported policy.

use ccgym_agent::network::{Network, Row};
use ccgym_core::Error;

use crate::agent_batch::check;

/// Function between two layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// tanh(x).
    Tanh,
    /// max(x, 0).
    Relu,
    /// x above 0, else eˣ − 1.
    Elu,
    /// x / (1 + e⁻ˣ).
    Silu,
}

impl Activation {
    /// Return the one with this name in configurations: `tanh`, `relu`, `elu` or `silu`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "tanh" => Self::Tanh,
            "relu" => Self::Relu,
            "elu" => Self::Elu,
            "silu" => Self::Silu,
            _ => return None,
        })
    }

    fn add(self, network: &mut Network, x: Row) -> Option<Row> {
        match self {
            Self::Tanh => network.unary("Tanh", x),
            Self::Relu => network.unary("Relu", x),
            Self::Elu => network.unary("Elu", x),
            Self::Silu => {
                let share = network.unary("Sigmoid", x)?;
                network.binary("Mul", x, share)
            }
        }
    }
}

/// A network, and the standard deviation of the actions around its mean.
pub struct Actor {
    network: Network,
    input: Row,
    mean: Row,
    /// Standard deviation of each number of an action.
    deviation: Vec<f32>,
    /// Bounds of each number of an action.
    bounds: Vec<(f32, f32)>,
}

impl Actor {
    /// Make a network of `inputs` features.
    ///
    /// `layers`: weights, output by output, and biases of each layer, from first to last. `deviation`: standard
    /// deviation of each number of an action. `bounds`: min and max of each.
    ///
    /// # Errors
    /// The parts do not fit together.
    pub fn new(
        inputs: usize,
        layers: &[(Vec<f32>, Vec<f32>)],
        activation: Activation,
        deviation: Vec<f32>,
        bounds: Vec<(f32, f32)>,
    ) -> Result<Self, Error> {
        let mut network = Network::default();
        let input = network.input(inputs);
        let mut mean = input;
        for (place, (weights, bias)) in layers.iter().enumerate() {
            let width = mean.len();
            check("weights of a layer", weights.len(), width * bias.len())?;
            let matrix = network.matrix(width, bias.len(), |i, o| f64::from(weights[o * width + i]));
            let bias = network.constant(&bias.iter().map(|b| f64::from(*b)).collect::<Vec<_>>());
            let added = network.product(mean, matrix).and_then(|sums| {
                let sums = network.binary("Add", sums, bias)?;
                if place + 1 < layers.len() {
                    activation.add(&mut network, sums)
                } else {
                    Some(sums)
                }
            });
            mean = added.expect("a row, its matrix and its bias have equal sizes");
        }
        check("deviation", deviation.len(), mean.len())?;
        check("bounds", bounds.len(), mean.len())?;
        Ok(Self { network, input, mean, deviation, bounds })
    }

    /// Return the number of features that it reads, from the beginning of an observation.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.input.len()
    }
    /// Return the number of numbers in an action.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.deviation.len()
    }

    /// Write the action drawn with `noise`, numbers of a standard normal distribution, and the same within the bounds.
    /// `values` is a buffer for the network's numbers.
    pub fn act(&self, values: &mut Vec<f64>, observation: &[f32], noise: &[f32], drawn: &mut [f32], taken: &mut [f32]) {
        self.network.run(values, &observation[..self.inputs()]);
        let mean = self.network.read(values, self.mean);
        for (i, (drawn, taken)) in drawn.iter_mut().zip(taken).enumerate() {
            *drawn = mean[i] as f32 + self.deviation[i] * noise[i];
            // Not `clamp`, which panics on NaN bounds; NaN stays NaN.
            *taken = if *drawn < self.bounds[i].0 {
                self.bounds[i].0
            } else if *drawn > self.bounds[i].1 {
                self.bounds[i].1
            } else {
                *drawn
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_activation() {
        for (name, at, value) in [
            ("tanh", 1.0, 0.761_594_2),
            ("relu", -1.0, 0.0),
            ("relu", 2.0, 2.0),
            ("elu", 2.0, 2.0),
            ("elu", -1.0, -0.632_120_55),
            ("silu", 1.0, 0.731_058_6),
        ] {
            let activation = Activation::named(name).expect(name);
            let layers = [(vec![1.0], vec![0.0]), (vec![1.0], vec![0.0])];
            let actor = Actor::new(1, &layers, activation, vec![0.0], vec![(-9.0, 9.0)]).expect("it fits");
            let (mut drawn, mut taken) = ([0.0], [0.0]);
            actor.act(&mut Vec::new(), &[at], &[0.0], &mut drawn, &mut taken);
            assert_eq!(drawn, [value], "{name}({at})");
        }
        assert_eq!(Activation::named("softmax"), None);
    }

    #[test]
    fn a_network_by_hand() {
        // The network reads two of three inputs; hidden units relu(x − y + 1), relu(y); the action is 2 h0 − h1 + 0.5.
        let layers = [(vec![1.0, -1.0, 0.0, 1.0], vec![1.0, 0.0]), (vec![2.0, -1.0], vec![0.5])];
        let actor = Actor::new(2, &layers, Activation::Relu, vec![0.5], vec![(-3.0, 3.0)]).expect("it fits");
        let (mut drawn, mut taken) = ([0.0], [0.0]);
        let mut act = |observation: &[f32], noise: f32| {
            actor.act(&mut Vec::new(), observation, &[noise], &mut drawn, &mut taken);
            (drawn[0], taken[0])
        };
        assert_eq!(act(&[1.0, 2.0, 9.0], 0.0), (-1.5, -1.5));
        assert_eq!(act(&[1.0, 2.0, 9.0], -4.0), (-3.5, -3.0));
        assert_eq!(act(&[3.0, 0.0, 9.0], 1.0), (9.0, 3.0));
    }

    #[test]
    fn parts_that_do_not_fit() {
        let layers = [(vec![1.0, -1.0, 0.0], vec![1.0, 0.0])];
        let found = Actor::new(2, &layers, Activation::Tanh, vec![0.5; 2], vec![(-1.0, 1.0); 2]).err();
        assert_eq!(found, check("weights of a layer", 3, 4).err());
        let found = Actor::new(1, &[(vec![1.0], vec![1.0])], Activation::Tanh, vec![], vec![]).err();
        assert_eq!(found, check("deviation", 0, 1).err());
    }
}
