//! How large hash tables are, by the rules of hashbrown.

/// Where control bytes of a hash table begin is a multiple of this.
pub(super) const GROUP: u64 = 16;

/// The buckets of a hash table that is made for so many entries, by hashbrown's rule: at most 7 of 8 are in use.
pub(crate) fn buckets_for(entries: u64) -> u64 {
    match entries {
        0 => 0,
        1..4 => 4,
        4..8 => 8,
        _ => (entries.saturating_mul(8) / 7).checked_next_power_of_two().unwrap_or(u64::MAX),
    }
}

/// The bytes of a hash table: slots, a control byte for each, and those of one more group. None without buckets.
pub(crate) fn table_bytes(buckets: u64, slot: u64) -> u64 {
    if buckets == 0 {
        return 0;
    }
    let slots = buckets.saturating_mul(slot).checked_next_multiple_of(GROUP).unwrap_or(u64::MAX);
    slots.saturating_add(buckets).saturating_add(GROUP)
}
