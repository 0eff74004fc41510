// Rounds of klauspost/reedsolomon for `gestalt codec bench`: each line of input
//
//	OP K M CHUNK_BYTES LOSSES THREADS COLD SECONDS
//
// is answered by a line with bytes of data a second, or with what is wrong.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"time"
	"unsafe"

	"github.com/klauspost/reedsolomon"
)

const (
	line      = 64
	gapLines  = 9         // as our own chunks: an odd number of cache lines apart
	coldBytes = 288 << 20 // many times the caches
)

type job struct {
	op                                string
	k, m, size, losses, threads, cold int
}

type worker struct {
	job     job
	encoder reedsolomon.Encoder
	sets    [][][]byte
	next    int
}

// chunks makes sets of k+m chunks; data is noise.
func chunks(j job) [][][]byte {
	lines := ((j.size+line-1)/line + gapLines) | 1
	stride := lines * line
	count := 1
	if j.cold != 0 {
		count = (coldBytes + (j.k+j.m)*stride - 1) / ((j.k + j.m) * stride)
	}
	memory := make([]byte, count*(j.k+j.m)*stride+line)
	rand.New(rand.NewSource(1)).Read(memory)
	start := (line - int(uintptr(unsafe.Pointer(&memory[0]))%line)) % line
	sets := make([][][]byte, count)
	for s := range sets {
		for c := 0; c < j.k+j.m; c++ {
			sets[s] = append(sets[s], memory[start:start+j.size:start+j.size])
			start += stride
		}
	}
	return sets
}

func newWorker(j job) (*worker, error) {
	encoder, err := reedsolomon.New(j.k, j.m, reedsolomon.WithMaxGoroutines(j.threads), reedsolomon.WithInversionCache(true))
	if err != nil {
		return nil, err
	}
	return &worker{job: j, encoder: encoder, sets: chunks(j)}, nil
}

// once does one operation on the next set.
func (w *worker) once() error {
	set := w.sets[w.next]
	w.next = (w.next + 1) % len(w.sets)
	if w.job.op == "encode" {
		return w.encoder.Encode(set)
	}
	for lost := 0; lost < w.job.losses; lost++ {
		set[lost] = set[lost][:0] // lost, with room for what comes back
	}
	return w.encoder.ReconstructData(set)
}

// prepare makes all parities, so that what is decoded can be checked.
func (w *worker) prepare() error {
	if w.job.op != "decode" {
		return nil
	}
	for _, set := range w.sets {
		if err := w.encoder.Encode(set); err != nil {
			return err
		}
	}
	before := append([]byte(nil), w.sets[0][0]...)
	if err := w.once(); err != nil {
		return err
	}
	w.next = 0
	if !bytes.Equal(before, w.sets[0][0]) {
		return fmt.Errorf("decoded wrong bytes")
	}
	return nil
}

func (w *worker) round(seconds float64) (float64, error) {
	if err := w.once(); err != nil {
		return 0, err
	}
	limit := time.Duration(seconds * 1e9)
	done, batch := 0, 1
	for begun := time.Now(); ; {
		for i := 0; i < batch; i++ {
			if err := w.once(); err != nil {
				return 0, err
			}
		}
		done += batch
		elapsed := time.Since(begun)
		if elapsed >= limit {
			return float64(done) * float64(w.job.k*w.job.size) / elapsed.Seconds(), nil
		}
		if elapsed < limit/16 {
			batch *= 2
		}
	}
}

func answer(text string, current *worker) (*worker, string) {
	var j job
	var seconds float64
	_, err := fmt.Sscan(text, &j.op, &j.k, &j.m, &j.size, &j.losses, &j.threads, &j.cold, &seconds)
	if err != nil || (j.op != "encode" && j.op != "decode") {
		return current, "error: not a job: " + text
	}
	if current == nil || current.job != j {
		if current, err = newWorker(j); err == nil {
			err = current.prepare()
		}
	}
	if err != nil {
		return nil, "error: " + err.Error()
	}
	rate, err := current.round(seconds)
	if err != nil {
		return nil, "error: " + err.Error()
	}
	return current, fmt.Sprintf("%.0f", rate)
}

func main() {
	var current *worker
	for input := bufio.NewScanner(os.Stdin); input.Scan(); {
		var text string
		current, text = answer(input.Text(), current)
		fmt.Println(text)
	}
}
