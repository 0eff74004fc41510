package main

import (
	"hash/maphash"
	"sort"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// state is what one key holds, and what clients have learnt of its versions.
type state struct {
	present bool
	value   string
	// version is the unique of the present item, once a client was told it; before, known is false.
	known   bool
	version uint64
	// seen lists the uniques that clients were told so far, in order, each followed by a comma. A version that nobody
	// has seen has none of these.
	seen string
}

// longestNumber is how many digits a number has at most: more cannot be counted on, whatever their value.
const longestNumber = 20

var key = porcupine.NondeterministicModel{
	Init: func() []interface{} { return []interface{}{state{}} },
	Step: func(from, input, output interface{}) []interface{} {
		return step(from.(state), input.(op), output.(*outcome))
	},
	Hash: hashed,
}

var seed = maphash.MakeSeed()

func hashed(of interface{}) uint64 {
	s := of.(state)
	parts := []string{strconv.FormatBool(s.present), s.value, strconv.FormatBool(s.known),
		strconv.FormatUint(s.version, 10), s.seen}
	return maphash.String(seed, strings.Join(parts, "\x00"))
}

// step gives the states after op: one or none if it was answered. What was not answered may also do nothing. (It may do
// something later instead: porcupine tries every place in the order up to the end.)
func step(s state, o op, told *outcome) []interface{} {
	if told != nil {
		return all(s.answered(o, *told))
	}
	return append(all(s.effect(o)), s)
}

func all(s state, possible bool) []interface{} {
	if possible {
		return []interface{}{s}
	}
	return nil
}

// answered gives the state after o if the answer can be explained in s.
func (s state) answered(o op, told outcome) (state, bool) {
	switch o.verb + " " + told.word {
	case "get value":
		return s.hit(told)
	case "get not_found", "delete not_found", "touch not_found", "incr not_found", "cas not_found",
		"replace not_stored", "append not_stored":
		return s, !s.present
	case "add not_stored", "touch touched":
		return s, s.present
	case "cas exists":
		return s, s.present && !(s.known && s.version == o.unique)
	case "cas stored":
		after, possible := s.effect(o)
		after.seen = with(s.seen, o.unique)
		return after, possible
	case "set stored", "add stored", "replace stored", "append stored", "delete deleted",
		"flush flushed":
		return s.effect(o)
	case "incr number":
		after, possible := s.effect(o)
		return after, possible && after.value == strconv.FormatUint(told.number, 10)
	case "incr not_number":
		_, isNumber := s.number()
		return s, s.present && !isNumber
	}
	return s, false
}

// hit gives the state after a read that was told a value, and perhaps its version.
func (s state) hit(told outcome) (state, bool) {
	if !s.present || s.value != told.value {
		return s, false
	}
	if told.cas == nil {
		return s, true
	}
	possible := s.mayBe(*told.cas)
	s.known, s.version, s.seen = true, *told.cas, with(s.seen, *told.cas)
	return s, possible
}

// effect gives the state after o, if o does anything in s.
func (s state) effect(o op) (state, bool) {
	switch o.verb {
	case "set":
		return s.holding(o.value), true
	case "add":
		return s.holding(o.value), !s.present
	case "replace":
		return s.holding(o.value), s.present
	case "append":
		return s.holding(s.value + o.value), s.present
	case "cas":
		return s.holding(o.value), s.present && s.mayBe(o.unique)
	case "delete":
		return state{seen: s.seen}, s.present
	case "flush":
		return state{seen: s.seen}, true
	case "incr":
		number, isNumber := s.number()
		return s.holding(strconv.FormatUint(number+o.by, 10)), isNumber
	}
	return s, false
}

// holding gives the state after a write: a new version, which nobody has seen.
func (s state) holding(value string) state {
	return state{present: true, value: value, seen: s.seen}
}

// mayBe says whether the present item may have this unique.
func (s state) mayBe(unique uint64) bool {
	if s.known {
		return s.version == unique
	}
	return !strings.Contains(","+s.seen, ","+strconv.FormatUint(unique, 10)+",")
}

// number gives the number that is held.
func (s state) number() (uint64, bool) {
	if !s.present || len(s.value) > longestNumber {
		return 0, false
	}
	number, err := strconv.ParseUint(s.value, 10, 64)
	return number, err == nil
}

// with adds a unique to a list of seen ones. The list is in order, so that equal sets are equal states.
func with(seen string, unique uint64) string {
	added := strconv.FormatUint(unique, 10)
	if strings.Contains(","+seen, ","+added+",") {
		return seen
	}
	list := append(strings.Split(strings.TrimSuffix(seen, ","), ","), added)
	if seen == "" {
		list = []string{added}
	}
	sort.Strings(list)
	return strings.Join(list, ",") + ","
}
