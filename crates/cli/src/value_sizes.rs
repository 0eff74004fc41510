//! `--value-size`: one size, or several with the shares that they have.

use std::str::FromStr;

use crate::exit::Exit;
use crate::units::Size;

/// A size of values, and how many of the items have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValueSize {
    /// Of a value, in bytes.
    pub size: Size,
    /// Of one; none where there is one size.
    pub share: Option<f64>,
}

impl FromStr for ValueSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((size, share)) = text.split_once(':') else {
            return Ok(Self { size: text.parse()?, share: None });
        };
        let bad = || format!("'{share}' is not a share: write a number above 0 up to 1, for example 0.9");
        let share: f64 = share.parse().map_err(|_| bad())?;
        if share > 0.0 && share <= 1.0 {
            Ok(Self { size: size.parse()?, share: Some(share) })
        } else {
            Err(bad())
        }
    }
}

/// Of each size, which are one in all.
///
/// # Errors
/// `Usage` unless they are, or there is one size without a share.
pub(crate) fn shares(sizes: &[ValueSize]) -> Result<Vec<f64>, Exit> {
    if let [ValueSize { share: None, .. }] = sizes {
        return Ok(vec![1.0]);
    }
    let shares: Option<Vec<f64>> = sizes.iter().map(|size| size.share).collect();
    let adds_up = |shares: &Vec<f64>| (shares.iter().sum::<f64>() - 1.0).abs() < 1e-6;
    let wrong =
        || Exit::Usage("the shares of --value-size must add up to 1, as in 200B:0.9,40KiB:0.1".to_owned());
    shares.filter(adds_up).ok_or_else(wrong)
}
