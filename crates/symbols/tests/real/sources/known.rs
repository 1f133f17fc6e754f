//! Prints an address in inlined code, and the lines of the calls that lead there.

unsafe extern "C" {
    static __ehdr_start: u8;
}

pub trait Outer {
    fn outer(&self) -> [usize; 4];
}

pub mod deep {
    pub struct Thing<T>(pub T);

    impl<T: Copy> Thing<T> {
        #[inline(always)]
        pub fn inner(&self) -> [usize; 2] {
            let at: usize;
            let line = line!() as usize + 1;
            unsafe { std::arch::asm!("lea {}, [rip]", out(reg) at) };
            [at, line]
        }
    }

    #[inline(always)]
    pub fn middle<T: Copy>(thing: &Thing<T>) -> [usize; 3] {
        let ([at, inner], middle) = (thing.inner(), line!() as usize);
        [at, inner, middle]
    }

    impl<T: Copy> super::Outer for Thing<T> {
        #[inline(never)]
        fn outer(&self) -> [usize; 4] {
            let ([at, inner, middle], outer) = (middle(self), line!() as usize);
            [at, inner, middle, outer]
        }
    }
}

fn main() {
    let closure = std::hint::black_box(|| {
        let at: usize;
        let line = line!() as usize + 1;
        unsafe { std::arch::asm!("lea {}, [rip]", out(reg) at) };
        [at, line]
    });
    let start = &raw const __ehdr_start as usize;
    let [at, inner, middle, outer] = deep::Thing(1u8).outer();
    println!("method {} {inner} {middle} {outer}", at - start);
    let [at, line] = closure();
    println!("closure {} {line}", at - start);
}
