// Speaks to a file of 32-bit floats, 24,000 a second: say TEXT FILE
// rustc say.rs -L DIR_OF_LIBUTTER && ./say "Hello there." hello.f32
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::io::Write;
use std::ptr::{null, null_mut};

#[repr(C)]
struct UtterError {
    code: c_int,
    text: [c_char; 4096],
}

#[link(name = "utter")]
extern "C" {
    fn utter_model_open(model: *mut *mut c_void, path: *const c_char, options: *const c_void, error: *mut UtterError) -> c_int;
    fn utter_model_close(model: *mut *mut c_void);
    fn utter_say(
        model: *mut c_void,
        text: *const c_char,
        options: *const c_void,
        sink: extern "C" fn(*mut c_void, *const f32, usize) -> bool,
        user: *mut c_void,
        error: *mut UtterError,
    ) -> c_int;
}

/// Takes samples while they are made; false stops.
extern "C" fn take(user: *mut c_void, pcm: *const f32, n: usize) -> bool {
    let (samples, file) = unsafe { (std::slice::from_raw_parts(pcm, n), &mut *(user as *mut std::fs::File)) };
    let bytes: Vec<u8> = samples.iter().flat_map(|x| x.to_le_bytes()).collect();
    file.write_all(&bytes).is_ok()
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let text = CString::new(words[1].as_str()).expect("a text");
    let mut file = std::fs::File::create(&words[2]).expect("a file");
    let mut error = UtterError { code: 0, text: [0; 4096] };
    let mut model = null_mut();
    // No path: the voice that comes with the library.
    let failed = unsafe {
        utter_model_open(&mut model, null(), null(), &mut error) != 0
            || utter_say(model, text.as_ptr(), null(), take, &mut file as *mut _ as *mut c_void, &mut error) != 0
    };
    unsafe { utter_model_close(&mut model) };
    if failed {
        eprintln!("say: {}", unsafe { CStr::from_ptr(error.text.as_ptr()) }.to_string_lossy());
        std::process::exit(1);
    }
}
