//! The links that a flow crosses.
//!
//! A path has one link, `uplink` and `downlink` of the run, or several with names. Each has two directions, numbered
//! from 0: `2 i` is the uplink of link `i`, `2 i + 1` its downlink. A flow crosses the links of its route in one
//! direction, and its acknowledgements come back through the other. A reverse flow's data crosses the direction of
//! other flows' acknowledgements.

use ccgym_core::Error;
use ccgym_path::ElementSpec;

use crate::spec::{FlowSpec, RunSpec};

/// The directions that a flow crosses, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Directions of its data.
    pub there: Vec<usize>,
    /// Directions of its acknowledgements.
    pub back: Vec<usize>,
}

impl Route {
    /// Make the route of a flow on a path with one link.
    #[must_use]
    pub fn plain() -> Self {
        Self { there: vec![0], back: vec![1] }
    }
}

impl RunSpec {
    /// True if packets of several origins meet on the way: several links, or flows in both directions.
    #[must_use]
    pub fn is_network(&self) -> bool {
        self.links.len() > 1 || self.flows.iter().any(|flow| flow.reverse)
    }

    /// Return name and elements of each direction.
    #[must_use]
    pub fn directions(&self) -> Vec<(String, &[ElementSpec])> {
        if self.links.is_empty() {
            return vec![("uplink".to_owned(), &self.uplink), ("downlink".to_owned(), &self.downlink)];
        }
        let both = self.links.iter().flat_map(|link| {
            [(link.name.clone(), &link.uplink[..]), (format!("{}:reverse", link.name), &link.downlink[..])]
        });
        both.collect()
    }

    /// Return the route of flow `index`.
    ///
    /// # Errors
    /// A link that does not exist, or that it names twice.
    pub fn route(&self, index: usize) -> Result<Route, Error> {
        let FlowSpec { route, reverse, .. } = &self.flows[index];
        let place = format!("flows[{index}].route");
        let mut crossed: Vec<usize> = Vec::new();
        for name in route {
            let names = || self.links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
            let known = self.links.iter().position(|link| link.name == *name).ok_or_else(|| {
                let expected = match self.links.is_empty() {
                    true => {
                        "no route, since the path has one link; leave it out, or give the path links with names".into()
                    }
                    false => format!("names of links: {}", names()),
                };
                Error::new(&place, format!("{name:?}"), expected)
            })?;
            let once = !crossed.contains(&known);
            Error::ensure(once, &place, format!("{name:?} twice"), "every link once; a route has no loops")?;
            crossed.push(known);
        }
        if route.is_empty() {
            crossed = (0..self.links.len().max(1)).collect();
        }
        let up = crossed.iter().map(|link| 2 * link).collect();
        let down = crossed.iter().rev().map(|link| 2 * link + 1).collect();
        Ok(if *reverse { Route { there: down, back: up } } else { Route { there: up, back: down } })
    }

    /// Return the max number of flows on one link of the route of flow `index`'s data, itself included.
    #[must_use]
    pub fn flows_beside(&self, index: usize) -> u32 {
        let Some(own) = self.is_network().then(|| self.route(index).ok()).flatten() else {
            return self.flows.len() as u32;
        };
        let routes: Vec<Route> = (0..self.flows.len()).filter_map(|i| self.route(i).ok()).collect();
        let crossing = |direction: &usize| routes.iter().filter(|route| route.there.contains(direction)).count();
        own.there.iter().map(crossing).max().unwrap_or(1) as u32
    }

    /// Return the elements of `directions` in order.
    pub fn elements<'a>(&'a self, directions: &'a [usize]) -> impl Iterator<Item = &'a ElementSpec> + Clone {
        directions.iter().flat_map(|&direction| {
            let (up, down) = match self.links.get(direction / 2) {
                Some(link) => (&link.uplink, &link.downlink),
                None => (&self.uplink, &self.downlink),
            };
            if direction % 2 == 0 {
                up
            } else {
                down
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    fn spec(flow: &Value, links: &[&str]) -> RunSpec {
        let links: Vec<_> = links.iter().map(|name| json!({"name": name, "uplink": [], "downlink": []})).collect();
        let flow = [&json!({"scheme": "reno"}), flow];
        let flow: serde_json::Map<_, _> = flow.iter().flat_map(|part| part.as_object().unwrap().clone()).collect();
        let spec = json!({"duration": 1, "uplink": [], "downlink": [], "links": links, "flows": [flow]});
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn routes_go_there_and_back() {
        for (flow, links, there, back) in [
            (json!({}), &[][..], vec![0], vec![1]),
            (json!({"reverse": true}), &[], vec![1], vec![0]),
            (json!({}), &["a", "b", "c"], vec![0, 2, 4], vec![5, 3, 1]),
            (json!({"route": ["c", "a"]}), &["a", "b", "c"], vec![4, 0], vec![1, 5]),
            (json!({"route": ["a", "b"], "reverse": true}), &["a", "b", "c"], vec![3, 1], vec![0, 2]),
        ] {
            let spec = spec(&flow, links);
            assert_eq!(spec.route(0).unwrap(), Route { there, back }, "{flow}");
            assert_eq!(spec.is_network(), spec.flows[0].reverse || links.len() > 1, "{flow}");
        }
    }

    #[test]
    fn a_flow_meets_those_of_its_fullest_link() {
        let mut long = spec(&json!({}), &["a", "b"]);
        for flow in [json!({"route": ["a"]}), json!({"route": ["b"]}), json!({"route": ["b"]})] {
            long.flows.extend(spec(&flow, &["a", "b"]).flows);
        }
        assert_eq!((0..4).map(|i| long.flows_beside(i)).collect::<Vec<_>>(), [3, 2, 3, 3]);
        let mut plain = spec(&json!({}), &[]);
        plain.flows.extend(spec(&json!({}), &[]).flows);
        assert_eq!(plain.flows_beside(0), 2);
        plain.flows.extend(spec(&json!({"reverse": true}), &[]).flows);
        assert_eq!((plain.flows_beside(0), plain.flows_beside(2)), (2, 1));
    }

    #[test]
    fn wrong_routes_are_refused() {
        for (flow, links, found) in [
            (json!({"route": ["a"]}), &[][..], "\"a\""),
            (json!({"route": ["d"]}), &["a", "b"], "\"d\""),
            (json!({"route": ["a", "b", "a"]}), &["a", "b"], "\"a\" twice"),
        ] {
            let error = spec(&flow, links).route(0).expect_err("wrong");
            assert_eq!((error.place.as_str(), error.found.as_str()), ("flows[0].route", found), "{flow}");
        }
    }
}
