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

// stackPlace is where a running call's stack is, seen from its iterator.
type stackPlace struct {
	iterator reflect.Type
	offset   int // of the slice
	known    bool
}

var (
	placeOnce sync.Once
	place     stackPlace
)

// stackSize returns the size of the stack that the call has now; 0 is unknown.
func stackSize(m api.Module, frames experimental.StackIterator) int {
	placeOnce.Do(func() { place = findStack(reflect.TypeOf(m.ExportedFunction(exportYield))) })
	v := reflect.ValueOf(frames)
	if !place.known || v.Type() != place.iterator {
		return 0
	}
	return len(*(*[]byte)(unsafe.Add(v.UnsafePointer(), place.offset)))
}

// findStack looks for the two in the type of wazero's functions.
func findStack(function reflect.Type) stackPlace {
	if function.Kind() != reflect.Pointer || function.Elem().Kind() != reflect.Struct {
		return stackPlace{}
	}
	stack, ok1 := function.Elem().FieldByName("stack")
	iterator, ok2 := function.Elem().FieldByName("stackIteratorImpl")
	if !ok1 || !ok2 || stack.Type != reflect.TypeFor[[]byte]() {
		return stackPlace{}
	}
	return stackPlace{reflect.PointerTo(iterator.Type), int(stack.Offset) - int(iterator.Offset), true}
}
