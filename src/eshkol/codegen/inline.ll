; Primitives that compiled code carries in itself, and what they are made of.
;
; A function named "inline.NAME" takes the context and the words of its arguments and gives a value; one named "test.NAME"
; gives an i1 and serves where NAME stands in a test (elsewhere its result becomes a boolean). The code generator reads
; this file to know which there are; a unit carries those it uses. Each has its fast path here and leaves everything
; else, errors too, to the primitive of the same name in C ("prim.NAME") or to the runtime's function for it, so that
; what a primitive means stands in one place. Where nothing is left but an error, the call is marked $FAILS: it never
; returns, so that behind it LLVM knows that a pair is one. Arithmetic is written by arithmetic.py. Other words that begin
; with $ are numbers of the runtime's layout.

define internal ptr @allocate(ptr %ctx, i64 %words) alwaysinline {
  %offset = shl i64 %words, 4
  %bumps = getelementptr i8, ptr %ctx, i64 $Context.bump
  %slot = getelementptr i8, ptr %bumps, i64 %offset
  %limit = getelementptr i8, ptr %slot, i64 8
  %next = load ptr, ptr %slot
  %end = load ptr, ptr %limit
  %bytes = shl i64 %words, 3
  %after = getelementptr i8, ptr %next, i64 %bytes
  %fits = icmp ule ptr %after, %end
  br i1 %fits, label %fast, label %slow, !prof !0
fast:
  store ptr %after, ptr %slot
  ret ptr %next
slow:
  %fresh = call ptr @esk_refill(ptr %ctx, i64 %words)
  ret ptr %fresh
}

define internal void @poll(ptr %ctx) alwaysinline {
  %frame = call ptr @llvm.frameaddress.p0(i32 0)
  %slot = getelementptr i8, ptr %ctx, i64 $Context.stack_limit
  %limit = load atomic volatile ptr, ptr %slot monotonic, align 8
  %deep = icmp ult ptr %frame, %limit
  br i1 %deep, label %slow, label %done, !prof !1
slow:
  call void @esk_poll(ptr %ctx)
  br label %done
done:
  ret void
}

; where the stack does not grow: only whether somebody interrupts. It needs no frame.
define internal void @poll_interrupt(ptr %ctx) alwaysinline {
  %slot = getelementptr i8, ptr %ctx, i64 $Context.stack_limit
  %limit = load atomic volatile i64, ptr %slot monotonic, align 8
  %asked = icmp eq i64 %limit, -1
  br i1 %asked, label %slow, label %done, !prof !1
slow:
  call void @esk_poll(ptr %ctx)
  br label %done
done:
  ret void
}

define internal %value @boolean(i1 %b) alwaysinline {
  %bits = zext i1 %b to i64
  %v = insertvalue %value { i64 $TAG_BOOLEAN, i64 undef }, i64 %bits, 1
  ret %value %v
}

define internal %value @pointer(i64 %tag, ptr %p) alwaysinline {
  %bits = ptrtoint ptr %p to i64
  %a = insertvalue %value undef, i64 %tag, 0
  %b = insertvalue %value %a, i64 %bits, 1
  ret %value %b
}

define internal %value @flonum(double %x) alwaysinline {
  %bits = bitcast double %x to i64
  %v = insertvalue %value { i64 $TAG_FLONUM, i64 undef }, i64 %bits, 1
  ret %value %v
}

define internal %value @fixnum(i64 %n) alwaysinline {
  %v = insertvalue %value { i64 $TAG_FIXNUM, i64 undef }, i64 %n, 1
  ret %value %v
}

define internal i1 @both_fixnums(i64 %ta, i64 %tb) alwaysinline {
  %x = icmp eq i64 %ta, $TAG_FIXNUM
  %y = icmp eq i64 %tb, $TAG_FIXNUM
  %both = and i1 %x, %y
  ret i1 %both
}

define internal double @machine_double(i64 %t, i64 %p) alwaysinline {
  %whole = sitofp i64 %p to double
  %real = bitcast i64 %p to double
  %is = icmp eq i64 %t, $TAG_FLONUM
  %x = select i1 %is, double %real, double %whole
  ret double %x
}

define internal i1 @"test.zero?"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %fix = icmp eq i64 %t, $TAG_FIXNUM
  br i1 %fix, label %fast, label %slow, !prof !0
fast:
  %v = icmp eq i64 %p, 0
  ret i1 %v
slow:
  %r = call %value @"prim.zero?"(ptr %ctx, i64 %t, i64 %p)
  %n = extractvalue %value %r, 1
  %z = icmp ne i64 %n, 0
  ret i1 %z
}

define internal i1 @"test.even?"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %fix = icmp eq i64 %t, $TAG_FIXNUM
  br i1 %fix, label %fast, label %slow, !prof !0
fast:
  %v = trunc i64 %p to i1
  %even = xor i1 %v, true
  ret i1 %even
slow:
  %r = call %value @"prim.even?"(ptr %ctx, i64 %t, i64 %p)
  %n = extractvalue %value %r, 1
  %z = icmp ne i64 %n, 0
  ret i1 %z
}

define internal i1 @"test.odd?"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %fix = icmp eq i64 %t, $TAG_FIXNUM
  br i1 %fix, label %fast, label %slow, !prof !0
fast:
  %v = trunc i64 %p to i1
  ret i1 %v
slow:
  %r = call %value @"prim.odd?"(ptr %ctx, i64 %t, i64 %p)
  %n = extractvalue %value %r, 1
  %z = icmp ne i64 %n, 0
  ret i1 %z
}

define internal i1 @"test.number?"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %own = call i1 @differentiated(i64 %t, i64 %t)
  br i1 %own, label %slow, label %fast, !prof !1
fast:
  %plain = call i1 @"test.%plain-number?"(ptr %ctx, i64 %t, i64 %p)
  ret i1 %plain
slow: ; of a number, or of a tensor
  %r = call %value @"prim.number?"(ptr %ctx, i64 %t, i64 %p)
  %n = extractvalue %value %r, 1
  %z = icmp ne i64 %n, 0
  ret i1 %z
}

define internal i1 @"test.exact-integer?"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %own = call i1 @differentiated(i64 %t, i64 %t)
  br i1 %own, label %slow, label %fast, !prof !1
fast:
  %fix = icmp eq i64 %t, $TAG_FIXNUM
  %big = icmp eq i64 %t, $TAG_BIGNUM
  %is = or i1 %fix, %big
  ret i1 %is
slow:
  %r = call %value @"prim.exact-integer?"(ptr %ctx, i64 %t, i64 %p)
  %n = extractvalue %value %r, 1
  %z = icmp ne i64 %n, 0
  ret i1 %z
}

define internal i1 @"test.not"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %boolean = icmp eq i64 %t, $TAG_BOOLEAN
  %zero = icmp eq i64 %p, 0
  %no = and i1 %boolean, %zero
  ret i1 %no
}

define internal i1 @"test.eq?"(ptr %ctx, i64 %ta, i64 %pa, i64 %tb, i64 %pb) alwaysinline {
  %x = icmp eq i64 %ta, %tb
  %y = icmp eq i64 %pa, %pb
  %same = and i1 %x, %y
  ret i1 %same
}

; whether one of the tags is that of a number that is being differentiated: it counts as its value
define internal i1 @differentiated(i64 %ta, i64 %tb) alwaysinline {
  %a = or i64 %ta, 1
  %b = or i64 %tb, 1
  %x = icmp eq i64 %a, $TAG_AD_NODE
  %y = icmp eq i64 %b, $TAG_AD_NODE
  %either = or i1 %x, %y
  ret i1 %either
}

define internal %value @"inline.%undifferentiated"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %is = call i1 @differentiated(i64 %t, i64 %t)
  br i1 %is, label %slow, label %fast, !prof !1
fast:
  %a = insertvalue %value undef, i64 %t, 0
  %v = insertvalue %value %a, i64 %p, 1
  ret %value %v
slow:
  %z = call %value @"prim.%undifferentiated"(ptr %ctx, i64 %t, i64 %p)
  ret %value %z
}

define internal i1 @"test.eqv?"(ptr %ctx, i64 %ta, i64 %pa, i64 %tb, i64 %pb) alwaysinline {
  %x = icmp eq i64 %ta, %tb
  br i1 %x, label %tags, label %differ
differ:
  %either = call i1 @differentiated(i64 %ta, i64 %tb)
  br i1 %either, label %slow, label %no, !prof !1
tags:
  %y = icmp eq i64 %pa, %pb
  br i1 %y, label %yes, label %numbers
numbers:
  %above = sub i64 %ta, $TAG_BIGNUM
  %big = icmp ult i64 %above, 3
  %flo = icmp eq i64 %ta, $TAG_FLONUM
  %own = call i1 @differentiated(i64 %ta, i64 %ta)
  %other = or i1 %flo, %own
  %ask = or i1 %big, %other
  br i1 %ask, label %slow, label %no, !prof !1
slow:
  %r = call %value @"prim.eqv?"(ptr %ctx, i64 %ta, i64 %pa, i64 %tb, i64 %pb)
  %n = extractvalue %value %r, 1
  %z = icmp ne i64 %n, 0
  ret i1 %z
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @"test.equal?"(ptr %ctx, i64 %ta, i64 %pa, i64 %tb, i64 %pb) alwaysinline {
  %x = icmp eq i64 %ta, %tb
  br i1 %x, label %tags, label %differ
differ:
  %either = call i1 @differentiated(i64 %ta, i64 %tb)
  br i1 %either, label %slow, label %no, !prof !1
tags:
  %y = icmp eq i64 %pa, %pb
  br i1 %y, label %yes, label %slow
slow:
  %r = call %value @"prim.equal?"(ptr %ctx, i64 %ta, i64 %pa, i64 %tb, i64 %pb)
  %n = extractvalue %value %r, 1
  %z = icmp ne i64 %n, 0
  ret i1 %z
yes:
  ret i1 true
no:
  ret i1 false
}

define internal %value @"inline.cons"(ptr %ctx, i64 %ta, i64 %pa, i64 %tb, i64 %pb) alwaysinline {
  %p = call ptr @allocate(ptr %ctx, i64 3)
  %a = shl i64 %ta, 8
  %b = shl i64 %tb, 16
  %tags = or i64 %a, %b
  %head = or i64 %tags, $TAG_PAIR
  store i64 %head, ptr %p
  %car = getelementptr i8, ptr %p, i64 $Pair.car
  store i64 %pa, ptr %car
  %cdr = getelementptr i8, ptr %p, i64 $Pair.cdr
  store i64 %pb, ptr %cdr
  %v = call %value @pointer(i64 $TAG_PAIR, ptr %p)
  ret %value %v
}

define internal %value @"inline.car"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %pair = icmp eq i64 %t, $TAG_PAIR
  br i1 %pair, label %fast, label %bad, !prof !0
fast:
  %o = inttoptr i64 %p to ptr
  %where = getelementptr i8, ptr %o, i64 1
  %byte = load i8, ptr %where
  %tag = zext i8 %byte to i64
  %field = getelementptr i8, ptr %o, i64 $Pair.car
  %bits = load i64, ptr %field
  %a = insertvalue %value undef, i64 %tag, 0
  %v = insertvalue %value %a, i64 %bits, 1
  ret %value %v
bad:
  %never = call %value @"prim.car"(ptr %ctx, i64 %t, i64 %p) $FAILS
  unreachable
}

define internal %value @"inline.cdr"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %pair = icmp eq i64 %t, $TAG_PAIR
  br i1 %pair, label %fast, label %bad, !prof !0
fast:
  %o = inttoptr i64 %p to ptr
  %where = getelementptr i8, ptr %o, i64 2
  %byte = load i8, ptr %where
  %tag = zext i8 %byte to i64
  %field = getelementptr i8, ptr %o, i64 $Pair.cdr
  %bits = load i64, ptr %field
  %a = insertvalue %value undef, i64 %tag, 0
  %v = insertvalue %value %a, i64 %bits, 1
  ret %value %v
bad:
  %never = call %value @"prim.cdr"(ptr %ctx, i64 %t, i64 %p) $FAILS
  unreachable
}

; A value was stored at %place, in an object that may be older than the last collection (value.h). What is no reference
; the optimizer mostly knows.
define internal void @stored_at(ptr %ctx, ptr %place, i64 %t) alwaysinline {
  %tag = trunc i64 %t to i32
  %bit = lshr i32 $POINTER_TAGS, %tag
  %reference = trunc i32 %bit to i1
  br i1 %reference, label %note, label %done
note:
  call void @written(ptr %ctx, ptr %place)
  br label %done
done:
  ret void
}

; a reference was stored there
define internal void @written(ptr %ctx, ptr %place) alwaysinline {
  %at = getelementptr i8, ptr %ctx, i64 $Context.cards
  %cards = load ptr, ptr %at
  %address = ptrtoint ptr %place to i64
  %number = lshr i64 %address, $CARD_SHIFT
  %card = getelementptr i8, ptr %cards, i64 %number
  store atomic i8 1, ptr %card monotonic, align 1
  ret void
}

define internal %value @"inline.set-car!"(ptr %ctx, i64 %t, i64 %p, i64 %tv, i64 %pv) alwaysinline {
  %pair = icmp eq i64 %t, $TAG_PAIR
  br i1 %pair, label %look, label %bad, !prof !0
look:
  %o = inttoptr i64 %p to ptr
  %flags_at = getelementptr i8, ptr %o, i64 $Object.flags
  %flags = load i8, ptr %flags_at
  %constant = and i8 %flags, $FLAG_LITERAL
  %literal = icmp ne i8 %constant, 0
  br i1 %literal, label %bad, label %fast, !prof !1
fast:
  %where = getelementptr i8, ptr %o, i64 1
  %byte = trunc i64 %tv to i8
  store i8 %byte, ptr %where
  %field = getelementptr i8, ptr %o, i64 $Pair.car
  store i64 %pv, ptr %field
  call void @stored_at(ptr %ctx, ptr %o, i64 %tv)
  ret %value { i64 $TAG_SPECIAL, i64 0 }
bad:
  %never = call %value @"prim.set-car!"(ptr %ctx, i64 %t, i64 %p, i64 %tv, i64 %pv) $FAILS
  unreachable
}

define internal %value @"inline.set-cdr!"(ptr %ctx, i64 %t, i64 %p, i64 %tv, i64 %pv) alwaysinline {
  %pair = icmp eq i64 %t, $TAG_PAIR
  br i1 %pair, label %look, label %bad, !prof !0
look:
  %o = inttoptr i64 %p to ptr
  %flags_at = getelementptr i8, ptr %o, i64 $Object.flags
  %flags = load i8, ptr %flags_at
  %constant = and i8 %flags, $FLAG_LITERAL
  %literal = icmp ne i8 %constant, 0
  br i1 %literal, label %bad, label %fast, !prof !1
fast:
  %where = getelementptr i8, ptr %o, i64 2
  %byte = trunc i64 %tv to i8
  store i8 %byte, ptr %where
  %field = getelementptr i8, ptr %o, i64 $Pair.cdr
  store i64 %pv, ptr %field
  call void @stored_at(ptr %ctx, ptr %o, i64 %tv)
  ret %value { i64 $TAG_SPECIAL, i64 0 }
bad:
  %never = call %value @"prim.set-cdr!"(ptr %ctx, i64 %t, i64 %p, i64 %tv, i64 %pv) $FAILS
  unreachable
}

; whether a vector is one and an index inside
define internal i1 @within(i64 %tv, i64 %pv, i64 %tk, i64 %k) alwaysinline {
  %vector = icmp eq i64 %tv, $TAG_VECTOR
  %whole = icmp eq i64 %tk, $TAG_FIXNUM
  %both = and i1 %vector, %whole
  br i1 %both, label %right, label %wrong, !prof !0
right:
  %o = inttoptr i64 %pv to ptr
  %at = getelementptr i8, ptr %o, i64 $Vector.length
  %length = load i64, ptr %at
  %inside = icmp ult i64 %k, %length
  ret i1 %inside
wrong:
  ret i1 false
}

define internal %value @"inline.vector-ref"(ptr %ctx, i64 %tv, i64 %pv, i64 %tk, i64 %k) alwaysinline {
  %inside = call i1 @within(i64 %tv, i64 %pv, i64 %tk, i64 %k)
  br i1 %inside, label %fast, label %bad, !prof !0
fast:
  %o = inttoptr i64 %pv to ptr
  %items = getelementptr i8, ptr %o, i64 $Vector.items
  %place = getelementptr %value, ptr %items, i64 %k
  %v = load %value, ptr %place
  ret %value %v
bad:
  %never = call %value @"prim.vector-ref"(ptr %ctx, i64 %tv, i64 %pv, i64 %tk, i64 %k) $FAILS
  unreachable
}

define internal %value @"inline.vector-set!"(ptr %ctx, i64 %tv, i64 %pv, i64 %tk, i64 %k, i64 %tx, i64 %px) alwaysinline {
  %inside = call i1 @within(i64 %tv, i64 %pv, i64 %tk, i64 %k)
  br i1 %inside, label %look, label %bad, !prof !0
look:
  %o = inttoptr i64 %pv to ptr
  %flags_at = getelementptr i8, ptr %o, i64 $Object.flags
  %flags = load i8, ptr %flags_at
  %constant = and i8 %flags, $FLAG_LITERAL
  %literal = icmp ne i8 %constant, 0
  br i1 %literal, label %bad, label %fast, !prof !1
fast:
  %items = getelementptr i8, ptr %o, i64 $Vector.items
  %place = getelementptr %value, ptr %items, i64 %k
  store i64 %tx, ptr %place
  %bits = getelementptr i8, ptr %place, i64 8
  store i64 %px, ptr %bits
  call void @stored_at(ptr %ctx, ptr %place, i64 %tx)
  ret %value { i64 $TAG_SPECIAL, i64 0 }
bad:
  call void @vector_set_fails(ptr %ctx, i64 %tv, i64 %pv, i64 %tk, i64 %k, i64 %tx, i64 %px) $FAILS
  unreachable
}

define internal void @vector_set_fails(ptr %ctx, i64 %tv, i64 %pv, i64 %tk, i64 %k, i64 %tx, i64 %px) noinline cold noreturn {
  %args = alloca [6 x i64]
  %a1 = getelementptr i64, ptr %args, i64 1
  %a2 = getelementptr i64, ptr %args, i64 2
  %a3 = getelementptr i64, ptr %args, i64 3
  %a4 = getelementptr i64, ptr %args, i64 4
  %a5 = getelementptr i64, ptr %args, i64 5
  store i64 %tv, ptr %args
  store i64 %pv, ptr %a1
  store i64 %tk, ptr %a2
  store i64 %k, ptr %a3
  store i64 %tx, ptr %a4
  store i64 %px, ptr %a5
  %never = call %value @"prim.vector-set!"(ptr %ctx, ptr %args, i64 3) $FAILS
  unreachable
}

define internal %value @"inline.vector-length"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %vector = icmp eq i64 %t, $TAG_VECTOR
  br i1 %vector, label %fast, label %bad, !prof !0
fast:
  %o = inttoptr i64 %p to ptr
  %at = getelementptr i8, ptr %o, i64 $Vector.length
  %length = load i64, ptr %at
  %v = call %value @fixnum(i64 %length)
  ret %value %v
bad:
  %never = call %value @"prim.vector-length"(ptr %ctx, i64 %t, i64 %p) $FAILS
  unreachable
}

define internal %value @"inline.string-length"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %string = icmp eq i64 %t, $TAG_STRING
  br i1 %string, label %fast, label %bad, !prof !0
fast:
  %o = inttoptr i64 %p to ptr
  %at = getelementptr i8, ptr %o, i64 $String.length
  %length = load i64, ptr %at
  %v = call %value @fixnum(i64 %length)
  ret %value %v
bad:
  %never = call %value @"prim.string-length"(ptr %ctx, i64 %t, i64 %p) $FAILS
  unreachable
}

define internal %value @"inline.string-ref"(ptr %ctx, i64 %t, i64 %p, i64 %tk, i64 %k) alwaysinline {
  %string = icmp eq i64 %t, $TAG_STRING
  %whole = icmp eq i64 %tk, $TAG_FIXNUM
  %both = and i1 %string, %whole
  br i1 %both, label %right, label %bad, !prof !0
right:
  %o = inttoptr i64 %p to ptr
  %at = getelementptr i8, ptr %o, i64 $String.length
  %length = load i64, ptr %at
  %inside = icmp ult i64 %k, %length
  br i1 %inside, label %fast, label %bad, !prof !0
fast:
  %chars = getelementptr i8, ptr %o, i64 $String.chars
  %place = getelementptr i32, ptr %chars, i64 %k
  %code = load i32, ptr %place
  %bits = zext i32 %code to i64
  %v = insertvalue %value { i64 $TAG_CHAR, i64 undef }, i64 %bits, 1
  ret %value %v
bad:
  %never = call %value @"prim.string-ref"(ptr %ctx, i64 %t, i64 %p, i64 %tk, i64 %k) $FAILS
  unreachable
}

define internal %value @"inline.char->integer"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %char = icmp eq i64 %t, $TAG_CHAR
  br i1 %char, label %fast, label %bad, !prof !0
fast:
  %v = call %value @fixnum(i64 %p)
  ret %value %v
bad:
  %never = call %value @"prim.char->integer"(ptr %ctx, i64 %t, i64 %p) $FAILS
  unreachable
}

define internal %value @"inline.unbox"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %box = icmp eq i64 %t, $TAG_BOX
  br i1 %box, label %fast, label %bad, !prof !0
fast:
  %o = inttoptr i64 %p to ptr
  %at = getelementptr i8, ptr %o, i64 $Box.value
  %v = load %value, ptr %at
  ret %value %v
bad:
  %never = call %value @"prim.unbox"(ptr %ctx, i64 %t, i64 %p) $FAILS
  unreachable
}

define internal i1 @"test.%record?"(ptr %ctx, i64 %t, i64 %p, i64 %tr, i64 %pr) alwaysinline {
  %record = icmp eq i64 %t, $TAG_RECORD
  br i1 %record, label %look, label %no
look:
  %o = inttoptr i64 %p to ptr
  %at = getelementptr i8, ptr %o, i64 $Record.type
  %type = load i64, ptr %at
  %same = icmp eq i64 %type, %pr
  ret i1 %same
no:
  ret i1 false
}

; a field whose index the expander wrote: it lies inside every record of the type
define internal %value @"inline.%record-ref"(ptr %ctx, i64 %t, i64 %p, i64 %tr, i64 %pr, i64 %ti, i64 %i, i64 %tw, i64 %pw) alwaysinline {
  %is = call i1 @"test.%record?"(ptr %ctx, i64 %t, i64 %p, i64 %tr, i64 %pr)
  br i1 %is, label %fast, label %bad, !prof !0
fast:
  %o = inttoptr i64 %p to ptr
  %fields = getelementptr i8, ptr %o, i64 $Record.fields
  %place = getelementptr %value, ptr %fields, i64 %i
  %v = load %value, ptr %place
  ret %value %v
bad:
  call void @record_ref_fails(ptr %ctx, i64 %t, i64 %p, i64 %tr, i64 %pr, i64 %ti, i64 %i, i64 %tw, i64 %pw) $FAILS
  unreachable
}

define internal void @record_ref_fails(ptr %ctx, i64 %t, i64 %p, i64 %tr, i64 %pr, i64 %ti, i64 %i, i64 %tw, i64 %pw) noinline cold noreturn {
  %args = alloca [8 x i64]
  %a1 = getelementptr i64, ptr %args, i64 1
  %a2 = getelementptr i64, ptr %args, i64 2
  %a3 = getelementptr i64, ptr %args, i64 3
  %a4 = getelementptr i64, ptr %args, i64 4
  %a5 = getelementptr i64, ptr %args, i64 5
  %a6 = getelementptr i64, ptr %args, i64 6
  %a7 = getelementptr i64, ptr %args, i64 7
  store i64 %t, ptr %args
  store i64 %p, ptr %a1
  store i64 %tr, ptr %a2
  store i64 %pr, ptr %a3
  store i64 %ti, ptr %a4
  store i64 %i, ptr %a5
  store i64 %tw, ptr %a6
  store i64 %pw, ptr %a7
  %never = call %value @"prim.%record-ref"(ptr %ctx, ptr %args, i64 4) $FAILS
  unreachable
}

; of an operator where one operand is a constant: whether the other is a machine number too
define internal i1 @both_machine(i64 %ta, i64 %tb) alwaysinline {
  %a = sub i64 %ta, $TAG_FIXNUM
  %b = sub i64 %tb, $TAG_FIXNUM
  %x = icmp ult i64 %a, 2
  %y = icmp ult i64 %b, 2
  %both = and i1 %x, %y
  ret i1 %both
}

; (- x)
define internal %value @negated(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %fix = icmp eq i64 %t, $TAG_FIXNUM
  br i1 %fix, label %whole, label %other
whole:
  %both = call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 0, i64 %p)
  %over = extractvalue { i64, i1 } %both, 1
  %n = extractvalue { i64, i1 } %both, 0
  br i1 %over, label %slow, label %small, !prof !1
small:
  %v = call %value @fixnum(i64 %n)
  ret %value %v
other:
  %flo = icmp eq i64 %t, $TAG_FLONUM
  br i1 %flo, label %real, label %slow, !prof !0
real:
  %a = bitcast i64 %p to double
  %x = fneg double %a
  %w = call %value @flonum(double %x)
  ret %value %w
slow:
  %z = call %value @esk_negate(ptr %ctx, i64 %t, i64 %p)
  ret %value %z
}

; ---- for code that is written quickly (parts.py), which calls these where other code has it in place

; the value of a variable, which must have one
define internal %value @"quick.global"(ptr %ctx, ptr %cell, ptr %name) alwaysinline {
  %bits_at = getelementptr i8, ptr %cell, i64 8
  %tag = load i64, ptr %cell
  %bits = load i64, ptr %bits_at
  %special = icmp eq i64 %tag, $TAG_SPECIAL
  %undefined = icmp eq i64 %bits, $SPECIAL_UNDEFINED
  %none = and i1 %special, %undefined
  br i1 %none, label %bad, label %good, !prof !1
bad:
  call void @esk_unbound(ptr %ctx, ptr %name)
  unreachable
good:
  %a = insertvalue %value undef, i64 %tag, 0
  %b = insertvalue %value %a, i64 %bits, 1
  ret %value %b
}

; another value for a variable, which must have one
define internal void @"quick.set"(ptr %ctx, ptr %cell, ptr %name, i64 %t, i64 %p) alwaysinline {
  %old = call %value @"quick.global"(ptr %ctx, ptr %cell, ptr %name)
  %bits_at = getelementptr i8, ptr %cell, i64 8
  store i64 %t, ptr %cell
  store i64 %p, ptr %bits_at
  ret void
}

; that a value is one
define internal void @"quick.single"(ptr %ctx, i64 %t, i64 %p) alwaysinline {
  %several = icmp eq i64 %t, $TAG_VALUES
  br i1 %several, label %bad, label %good, !prof !1
bad:
  call void @esk_wrong_values(ptr %ctx, i64 1, i64 %t, i64 %p)
  unreachable
good:
  ret void
}
