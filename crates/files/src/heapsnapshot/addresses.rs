//! Addresses of blocks, beside ids of 32 bits: an id has the low bits of an address, and a region has the others.

use crate::fault::Fault;

/// Keys of the arrays: rows from which on ids belong to a region, and rows whose ids are not made of their addresses.
pub(super) const REGIONS: &str = "regions";
pub(super) const ADDRESSES: &str = "addresses";

/// Bits of the number of an address in its region. An id has one more.
const NUMBER_BITS: u32 = 31;
/// Bits of an address that no id has.
const GRANULE_BITS: u32 = 3;
/// The region of nodes that are no single blocks.
const NO_REGION: u32 = u32::MAX;

/// The region of an address, 16 GiB, and its number in there. Numbers of different regions do not begin at the same value.
pub(super) fn region_and_number(address: u64) -> (u32, u32) {
    let granule = address >> GRANULE_BITS;
    let region = (granule >> NUMBER_BITS) as u32;
    (region, (granule as u32 ^ mixed(region)) & (u32::MAX >> 1))
}

fn mixed(region: u32) -> u32 {
    region.wrapping_mul(0x9e37_79b9)
}

/// The address whose id this is.
fn address_of(region: u32, id: u32) -> u64 {
    let granule = u64::from((id >> 1 ^ mixed(region)) & (u32::MAX >> 1));
    (u64::from(region) << NUMBER_BITS | granule) << GRANULE_BITS
}

/// Addresses of nodes, as they are written. Most heaps need a few regions.
pub(super) struct AddressColumn {
    /// Rows, and the region from there on.
    pub regions: Vec<[u32; 2]>,
    /// Rows with the upper and the lower half of their address.
    pub others: Vec<[u32; 3]>,
    region: u32,
}

impl AddressColumn {
    pub(super) fn new() -> AddressColumn {
        AddressColumn { regions: Vec::new(), others: Vec::new(), region: NO_REGION }
    }

    /// Adds a row: the address of a block, and the id that it got.
    #[inline]
    pub(super) fn push(&mut self, row: u32, address: Option<u64>, id: u32) {
        let region = match address {
            None => NO_REGION,
            Some(address) => {
                let (region, _) = region_and_number(address);
                if address_of(region, id) != address {
                    return self.others.push([row, (address >> 32) as u32, address as u32]);
                }
                region
            }
        };
        if region != self.region {
            self.region = region;
            self.regions.push([row, region]);
        }
    }
}

/// Addresses of nodes, as they are read.
#[derive(Default)]
pub(super) struct StoredAddresses {
    /// Of each node.
    pub ids: Vec<u32>,
    pub regions: Vec<[u64; 2]>,
    pub others: Vec<[u64; 3]>,
}

impl StoredAddresses {
    /// The address of each node, 0 for those without. Empty if the file has none.
    pub(super) fn addresses(&self) -> Result<Vec<u64>, Fault> {
        if self.regions.is_empty() && self.others.is_empty() {
            return Ok(Vec::new());
        }
        let wrong =
            |key: &str| Fault::Whole(format!("damaged: {key:?} has rows in no order, or that do not exist"));
        let mut addresses = vec![0; self.ids.len()];
        let ends = self.regions[1.min(self.regions.len())..].iter().map(|next| next[0]);
        for ([row, region], end) in self.regions.iter().zip(ends.chain([self.ids.len() as u64])) {
            if row > &end || end > self.ids.len() as u64 {
                return Err(wrong(REGIONS));
            }
            let Some(region) = u32::try_from(*region).ok().filter(|region| *region != NO_REGION) else {
                continue;
            };
            let rows = *row as usize..end as usize;
            for (address, id) in addresses[rows.clone()].iter_mut().zip(&self.ids[rows]) {
                *address = address_of(region, *id);
            }
        }
        for [row, high, low] in &self.others {
            let at = usize::try_from(*row).ok().and_then(|row| addresses.get_mut(row));
            *at.ok_or_else(|| wrong(ADDRESSES))? = high << 32 | low & u64::from(u32::MAX);
        }
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_give_their_addresses_back() {
        for address in [0x10, 0x5581_2345_0010, 0x7fff_ffff_fff8, 0x7f12_0000_0030] {
            let (region, number) = region_and_number(address);
            assert_eq!(address_of(region, 2 * number + 1), address);
        }
    }

    #[test]
    fn rows_without_addresses_and_other_ids_are_kept_apart() {
        let id = |address| 2 * region_and_number(address).1 + 1;
        let rows = [
            (None, 1),
            (Some(0x5581_2345_0010), id(0x5581_2345_0010)),
            (Some(0x5581_2345_0044), 77),
            (Some(0x5581_2345_0050), id(0x5581_2345_0050)),
            (None, 9),
            (Some(0x7f12_0000_0030), id(0x7f12_0000_0030)),
        ];
        let mut column = AddressColumn::new();
        (0..).zip(rows).for_each(|(row, (address, id))| column.push(row, address, id));
        assert_eq!((column.regions.len(), column.others.len()), (3, 1));
        let stored = StoredAddresses {
            ids: rows.iter().map(|(_, id)| *id).collect(),
            regions: column.regions.iter().map(|row| row.map(u64::from)).collect(),
            others: column.others.iter().map(|row| row.map(u64::from)).collect(),
        };
        let expected: Vec<u64> = rows.iter().map(|(address, _)| address.unwrap_or(0)).collect();
        assert_eq!(stored.addresses().unwrap(), expected);
        for (regions, others) in
            [(vec![[7, 1]], vec![]), (vec![[3, 1], [2, 1]], vec![]), (vec![], vec![[6, 0, 0]])]
        {
            let damaged = StoredAddresses { ids: stored.ids.clone(), regions, others };
            assert!(damaged.addresses().is_err());
        }
        assert!(StoredAddresses::default().addresses().unwrap().is_empty());
    }
}
