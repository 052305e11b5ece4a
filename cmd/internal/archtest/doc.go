// Package archtest holds the shape of the tree: who may import whom, where each
// dependency lives, and a few habits that a compiler does not check.
//
// It has no code of its own but the words that pages share with comments. The rules are tables in table_test.go, each with
// its reason; to change the shape, change the table and say why in the change.
// The tests read the source itself, so that files behind build tags count too,
// and rooms that do not exist yet are no mistake.
package archtest
