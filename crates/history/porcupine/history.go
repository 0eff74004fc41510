package main

import (
	"encoding/json"
	"fmt"
	"sort"

	"github.com/anishathalye/porcupine"
)

// operation is one request of one client. Keys and values are strings with one character for each byte.
type operation struct {
	Op      op      `json:"op"`
	Invoked moment  `json:"invoked"`
	Answer  *answer `json:"answer"`
}

// answer is missing if it never came: the operation may take effect at any later moment, or never.
type answer struct {
	At      moment  `json:"at"`
	Outcome outcome `json:"outcome"`
}

// moment is a time, and an order among equal times.
type moment struct {
	Time  uint64 `json:"time"`
	Order uint64 `json:"order"`
}

func (m moment) before(other moment) bool {
	return m.Time < other.Time || m.Time == other.Time && m.Order < other.Order
}

// op is what a client asked.
type op struct {
	verb   string
	value  string // what to store or append
	unique uint64 // of a cas
	by     uint64 // of an incr
}

// outcome is what a client was told.
type outcome struct {
	word   string
	value  string  // of a hit
	cas    *uint64 // of a hit that asked for it
	number uint64  // of an incr
}

func (o *op) UnmarshalJSON(text []byte) error {
	var detail json.RawMessage
	if err := variant(text, &o.verb, &detail); err != nil {
		return err
	}
	switch o.verb {
	case "get", "delete", "touch", "flush":
		return nil
	case "set", "add", "replace", "append":
		return json.Unmarshal(detail, &o.value)
	case "incr":
		return json.Unmarshal(detail, &o.by)
	case "cas":
		var cas struct {
			Value  string
			Unique uint64
		}
		err := json.Unmarshal(detail, &cas)
		o.value, o.unique = cas.Value, cas.Unique
		return err
	}
	return fmt.Errorf("no such operation: %s", text)
}

func (o *outcome) UnmarshalJSON(text []byte) error {
	var detail json.RawMessage
	if err := variant(text, &o.word, &detail); err != nil {
		return err
	}
	switch o.word {
	case "stored", "not_stored", "exists", "not_found", "deleted", "touched", "not_number", "flushed":
		return nil
	case "number":
		return json.Unmarshal(detail, &o.number)
	case "value":
		var hit struct {
			Value string
			Cas   *uint64
		}
		err := json.Unmarshal(detail, &hit)
		o.value, o.cas = hit.Value, hit.Cas
		return err
	}
	return fmt.Errorf("no such outcome: %s", text)
}

// variant takes "name" or {"name": detail} apart, which is how serde writes an enum.
func variant(text []byte, name *string, detail *json.RawMessage) error {
	if json.Unmarshal(text, name) == nil {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return err
	}
	if len(object) != 1 {
		return fmt.Errorf("not one variant: %s", text)
	}
	for only := range object {
		*name, *detail = only, object[only]
	}
	return nil
}

// intervals makes porcupine's form of a history. Moments become their ranks, because porcupine has one number for a
// time; equal moments stay equal, and closed intervals that touch are concurrent there as they are here. What was
// never answered returns after everything else.
func intervals(history []operation) []porcupine.Operation {
	rank := ranks(history)
	var all []porcupine.Operation
	for _, operation := range history {
		interval := porcupine.Operation{
			Input:  operation.Op,
			Call:   rank[operation.Invoked],
			Output: (*outcome)(nil),
			Return: int64(len(rank)),
		}
		if operation.Answer != nil {
			interval.Output = &operation.Answer.Outcome
			interval.Return = rank[operation.Answer.At]
		}
		all = append(all, interval)
	}
	return all
}

func ranks(history []operation) map[moment]int64 {
	rank := map[moment]int64{}
	for _, operation := range history {
		rank[operation.Invoked] = 0
		if operation.Answer != nil {
			rank[operation.Answer.At] = 0
		}
	}
	var moments []moment
	for moment := range rank {
		moments = append(moments, moment)
	}
	sort.Slice(moments, func(a, b int) bool { return moments[a].before(moments[b]) })
	for index, moment := range moments {
		rank[moment] = int64(index)
	}
	return rank
}
