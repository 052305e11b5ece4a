package projections

import "slices"

// firstOf returns the first entry of list that is chosen, valid until the list changes; nil if
// there is none.
func firstOf[E any](list []E, chosen func(*E) bool) *E {
	for i := range list {
		if chosen(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// lastOf returns the last entry of list that is chosen, on the terms of firstOf.
func lastOf[E any](list []E, chosen func(*E) bool) *E {
	for i := range slices.Backward(list) {
		if chosen(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// without returns what is left of list, in its memory; nil if nothing is.
func without[E any](list []E, chosen func(*E) bool) []E {
	left := list[:0]
	for i := range list {
		if !chosen(&list[i]) {
			left = append(left, list[i])
		}
	}
	if clear(list[len(left):]); len(left) == 0 {
		return nil
	}
	return left
}
