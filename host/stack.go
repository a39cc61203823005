package host

import (
	"reflect"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// This file finds out how large a guest's stack is. wazero keeps it in a slice
// that it doubles, by copying, up to 80 MB; with that it takes tens of
// milliseconds at once. Counting the depth in the guest would cost half of a
// recursive function's time again. So the slice is looked at where wazero
// keeps it, which it does not offer: in its callEngine, of which the iterator
// that a listener gets is a part. Where that is not so, as in wazero's
// interpreter, the stack is as large as wazero lets it be.

// stackPlaces says for each type of iterator, one for each of wazero's engines,
// how far from it the slice is; none is 0.
var stackPlaces sync.Map

// stackSize returns the size of the stack that the call has now; 0 is unknown.
func stackSize(m api.Module, frames experimental.StackIterator) int {
	iterator := reflect.ValueOf(frames)
	place, known := stackPlaces.Load(iterator.Type())
	if !known {
		place = stackPlace(reflect.TypeOf(m.ExportedFunction(exportYield)), iterator.Type())
		stackPlaces.Store(iterator.Type(), place)
	}
	if place.(int) == 0 {
		return 0
	}
	return len(*(*[]byte)(unsafe.Add(iterator.UnsafePointer(), place.(int))))
}

// stackPlace looks for both in the type of wazero's functions.
func stackPlace(function, iterator reflect.Type) int {
	if function.Kind() != reflect.Pointer || function.Elem().Kind() != reflect.Struct {
		return 0
	}
	stack, ok1 := function.Elem().FieldByName("stack")
	part, ok2 := function.Elem().FieldByName("stackIteratorImpl")
	if !ok1 || !ok2 || stack.Type != reflect.TypeFor[[]byte]() || reflect.PointerTo(part.Type) != iterator {
		return 0
	}
	return int(stack.Offset) - int(part.Offset)
}
