//! A policy while it is trained: a small network that gives the mean of a Gaussian.
//!
//! Sums are taken in `f64` in a fixed order, and the mean is rounded to `f32` at the end, as an exported policy does it.

/// What stands between two layers.
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
    /// By its name in configurations: `tanh`, `relu`, `elu` or `silu`.
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

    fn of(self, x: f64) -> f64 {
        match self {
            // Twice as fast as `tanh`; what is lost of tiny numbers is far below what an f32 of the mean can show.
            Self::Tanh => 1.0 - 2.0 / (1.0 + (2.0 * x).exp()),
            Self::Relu => x.max(0.0),
            Self::Elu if x > 0.0 => x,
            Self::Elu => x.exp_m1(),
            Self::Silu => x / (1.0 + (-x).exp()),
        }
    }
}

/// A layer's weighted sums.
struct Layer {
    /// Input by input, the weights to all outputs.
    weights: Vec<f64>,
    bias: Vec<f64>,
}

impl Layer {
    fn apply(&self, inputs: &[f64], outputs: &mut Vec<f64>) {
        outputs.clear();
        outputs.extend_from_slice(&self.bias);
        for (input, weights) in inputs.iter().zip(self.weights.chunks_exact(self.bias.len())) {
            for (output, weight) in outputs.iter_mut().zip(weights) {
                *output += input * weight;
            }
        }
    }
}

/// A network, and how far from its answers actions are drawn.
pub struct Actor {
    layers: Vec<Layer>,
    activation: Activation,
    inputs: usize,
    /// Standard deviation of each number of an action.
    deviation: Vec<f32>,
    /// Where each number of an action is clipped to.
    bounds: Vec<(f32, f32)>,
}

/// A network whose parts do not fit together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: found {found} numbers, expected {expected}")]
pub struct Misfit {
    part: &'static str,
    found: usize,
    expected: usize,
}

impl Actor {
    /// A network of `inputs` features.
    ///
    /// `layers`: weights, output by output, and biases of each layer, from first to last. `deviation`: standard
    /// deviation of each number of an action. `bounds`: lowest and highest value of each.
    ///
    /// # Errors
    /// The parts do not fit together.
    pub fn new(
        inputs: usize,
        layers: &[(Vec<f32>, Vec<f32>)],
        activation: Activation,
        deviation: Vec<f32>,
        bounds: Vec<(f32, f32)>,
    ) -> Result<Self, Misfit> {
        let mut width = inputs;
        let mut made = Vec::new();
        for (weights, bias) in layers {
            let outputs = bias.len();
            fits("weights of a layer", weights.len(), width * outputs)?;
            let turned = (0..width).flat_map(|i| (0..outputs).map(move |o| f64::from(weights[o * width + i])));
            made.push(Layer { weights: turned.collect(), bias: bias.iter().map(|b| f64::from(*b)).collect() });
            width = outputs;
        }
        fits("deviation", deviation.len(), width)?;
        fits("bounds", bounds.len(), width)?;
        Ok(Self { layers: made, activation, inputs, deviation, bounds })
    }

    /// Features that it sees, from the beginning of an observation.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.inputs
    }
    /// Numbers of an action.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.deviation.len()
    }

    /// Write the action drawn with `noise`, numbers of a standard normal distribution, and the same within the bounds.
    pub fn act(&self, scratch: &mut Scratch, observation: &[f32], noise: &[f32], drawn: &mut [f32], taken: &mut [f32]) {
        let Scratch { values, next } = scratch;
        values.clear();
        values.extend(observation[..self.inputs].iter().map(|x| f64::from(*x)));
        for (place, layer) in self.layers.iter().enumerate() {
            layer.apply(values, next);
            std::mem::swap(values, next);
            if place + 1 < self.layers.len() {
                values.iter_mut().for_each(|value| *value = self.activation.of(*value));
            }
        }
        for (i, (drawn, taken)) in drawn.iter_mut().zip(taken).enumerate() {
            *drawn = values[i] as f32 + self.deviation[i] * noise[i];
            // Not `clamp`, which refuses bounds that are not numbers; what is not a number stays so.
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

/// Room for what passes between layers.
#[derive(Default)]
pub struct Scratch {
    values: Vec<f64>,
    next: Vec<f64>,
}

fn fits(part: &'static str, found: usize, expected: usize) -> Result<(), Misfit> {
    if found == expected {
        Ok(())
    } else {
        Err(Misfit { part, found, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_activation() {
        for (name, at, value) in [
            ("tanh", 1.0, 0.761_594_155_955_764_9),
            ("relu", -1.0, 0.0),
            ("relu", 2.0, 2.0),
            ("elu", 2.0, 2.0),
            ("elu", -1.0, -0.632_120_558_828_557_7),
            ("silu", 1.0, 0.731_058_578_630_004_9),
        ] {
            let activation = Activation::named(name).expect(name);
            assert!((activation.of(at) - value).abs() < 1e-15, "{name}({at})");
        }
        assert_eq!(Activation::named("softmax"), None);
    }

    #[test]
    fn a_network_by_hand() {
        // Two inputs of three are seen; hidden units relu(x − y + 1) and relu(y); the action is 2 h0 − h1 + 0.5.
        let layers = [(vec![1.0, -1.0, 0.0, 1.0], vec![1.0, 0.0]), (vec![2.0, -1.0], vec![0.5])];
        let actor = Actor::new(2, &layers, Activation::Relu, vec![0.5], vec![(-3.0, 3.0)]).expect("it fits");
        let (mut drawn, mut taken) = ([0.0], [0.0]);
        let mut act = |observation: &[f32], noise: f32| {
            actor.act(&mut Scratch::default(), observation, &[noise], &mut drawn, &mut taken);
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
        assert_eq!(found, Some(Misfit { part: "weights of a layer", found: 3, expected: 4 }));
        let found = Actor::new(1, &[(vec![1.0], vec![1.0])], Activation::Tanh, vec![], vec![]).err();
        assert_eq!(found, Some(Misfit { part: "deviation", found: 0, expected: 1 }));
    }
}
