// Command porcupine-check judges histories with porcupine, a linearizability checker that others wrote, so that
// Gestalt's own checker can be held against it.
//
// Standard input has one history of one key a line: a JSON array of operations, as History::write_by_key of the crate
// `history` writes them. Standard output has one verdict a line: ok, illegal, or unknown (out of time).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// patience bounds the search in one history; out of time is a verdict of its own, never a pass.
const patience = 30 * time.Second

func main() {
	if err := judge(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// judge reads histories until the end and writes their verdicts.
func judge(in io.Reader, out io.Writer) error {
	model := key.ToModel()
	histories := json.NewDecoder(bufio.NewReader(in))
	verdicts := bufio.NewWriter(out)
	for number := 1; histories.More(); number++ {
		var history []operation
		if err := histories.Decode(&history); err != nil {
			return fmt.Errorf("history %d: %w", number, err)
		}
		verdict := porcupine.CheckOperationsTimeout(model, intervals(history), patience)
		fmt.Fprintln(verdicts, strings.ToLower(string(verdict)))
	}
	return verdicts.Flush()
}
