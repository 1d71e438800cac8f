// Speaks to a file of 32-bit floats, 24,000 a second: say TEXT FILE
// CGO_CFLAGS=-IDIR CGO_LDFLAGS=-LDIR go run say.go "Hello there." hello.f32
package main

// #cgo LDFLAGS: -lutter
// #include <stdlib.h>
// #include <string.h>
// #include "utter.h"
import "C"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// speak gives samples to take while they are made.
func speak(text string, take func([]float32) error) error {
	var failure C.utter_error
	var model *C.utter_model
	var stream *C.utter_stream
	words := C.CString(text)
	defer C.free(unsafe.Pointer(words))
	defer C.utter_model_close(&model)
	defer C.utter_stream_free(&stream)
	// No path: the voice that comes with the library. No options: the model's own.
	if C.utter_model_open(&model, nil, nil, &failure) != C.UTTER_OK ||
		C.utter_stream_open(&stream, model, nil, &failure) != C.UTTER_OK ||
		C.utter_stream_text(stream, words, C.strlen(words), &failure) != C.UTTER_OK ||
		C.utter_stream_finish(stream, &failure) != C.UTTER_OK {
		return errors.New(C.GoString(&failure.text[0]))
	}
	pcm := make([]float32, 1920)
	for {
		var n C.size_t
		status := C.utter_stream_read(stream, (*C.float)(&pcm[0]), C.size_t(len(pcm)), &n, &failure)
		if status == C.UTTER_END {
			return nil
		}
		if status != C.UTTER_OK && status != C.UTTER_AGAIN {
			return errors.New(C.GoString(&failure.text[0]))
		}
		if err := take(pcm[:n]); err != nil {
			return err
		}
	}
}

func main() {
	file, err := os.Create(os.Args[2])
	if err == nil {
		err = speak(os.Args[1], func(pcm []float32) error { return binary.Write(file, binary.LittleEndian, pcm) })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "say:", err)
		os.Exit(1)
	}
}
