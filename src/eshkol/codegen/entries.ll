; How procedures are entered from outside compiled code, and the procedures that only compiled code can be: those that
; call others in tail position. Loaded once in a process; the runtime keeps their addresses. $ENTRY stands for the
; parameters of an entry, $PASS for the words of a call of one, $WORDS for loading %word0 … from %direct (and passing
; those for which there is no register) and the entry of %target, $JUMP for a jump to the procedure (%tf, %pf) with %n
; arguments that lie in %direct, $AGAIN for a jump to the entry that %self has by now, with the arguments as they
; came, $CONTEXT for the context as compiled code passes it.

; (a b c d) of a call as an array, with the arguments behind them
define internal ptr @gathered(ptr %ctx, i64 %count, ptr %room) noinline {
  %extra_at = getelementptr i8, ptr %ctx, i64 $Context.extra
  %extra = load ptr, ptr %extra_at
  %rest = sub i64 %count, 4
  %bytes = shl i64 %rest, 4
  %behind = getelementptr i8, ptr %room, i64 64
  call void @llvm.memcpy.p0.p0.i64(ptr %behind, ptr %extra, i64 %bytes, i1 false)
  ret ptr %room
}

define internal void @stored(ptr %room, i64 %t0, i64 %p0, i64 %t1, i64 %p1, i64 %t2, i64 %p2, i64 %t3, i64 %p3) alwaysinline {
  %a1 = getelementptr i64, ptr %room, i64 1
  %a2 = getelementptr i64, ptr %room, i64 2
  %a3 = getelementptr i64, ptr %room, i64 3
  %a4 = getelementptr i64, ptr %room, i64 4
  %a5 = getelementptr i64, ptr %room, i64 5
  %a6 = getelementptr i64, ptr %room, i64 6
  %a7 = getelementptr i64, ptr %room, i64 7
  store i64 %t0, ptr %room
  store i64 %p0, ptr %a1
  store i64 %t1, ptr %a2
  store i64 %p1, ptr %a3
  store i64 %t2, ptr %a4
  store i64 %p2, ptr %a5
  store i64 %t3, ptr %a6
  store i64 %p3, ptr %a7
  ret void
}

define internal ptr @function_of(ptr %self) alwaysinline {
  %at = getelementptr i8, ptr %self, i64 $Closure.procedure
  %procedure = load ptr, ptr %at
  %where = getelementptr i8, ptr %procedure, i64 $Procedure.function
  %function = load ptr, ptr %where
  ret ptr %function
}

define tailcc %value @"entry.0"($ENTRY) {
  %right = icmp eq i64 %count, 0
  br i1 %right, label %go, label %bad, !prof !0
bad:
  call void @esk_wrong_arity(ptr %ctx, ptr %self, i64 %count)
  unreachable
go:
  %function = call ptr @function_of(ptr %self)
  %v = call %value %function(ptr %ctx)
  ret %value %v
}

define tailcc %value @"entry.1"($ENTRY) {
  %right = icmp eq i64 %count, 1
  br i1 %right, label %go, label %bad, !prof !0
bad:
  call void @esk_wrong_arity(ptr %ctx, ptr %self, i64 %count)
  unreachable
go:
  %function = call ptr @function_of(ptr %self)
  %v = call %value %function(ptr %ctx, i64 %t0, i64 %p0)
  ret %value %v
}

define tailcc %value @"entry.2"($ENTRY) {
  %right = icmp eq i64 %count, 2
  br i1 %right, label %go, label %bad, !prof !0
bad:
  call void @esk_wrong_arity(ptr %ctx, ptr %self, i64 %count)
  unreachable
go:
  %function = call ptr @function_of(ptr %self)
  %v = call %value %function(ptr %ctx, i64 %t0, i64 %p0, i64 %t1, i64 %p1)
  ret %value %v
}

define tailcc %value @"entry.N"($ENTRY) {
  %at = getelementptr i8, ptr %self, i64 $Closure.procedure
  %procedure = load ptr, ptr %at
  %min_at = getelementptr i8, ptr %procedure, i64 $Procedure.min
  %max_at = getelementptr i8, ptr %procedure, i64 $Procedure.max
  %min32 = load i32, ptr %min_at
  %max32 = load i32, ptr %max_at
  %min = sext i32 %min32 to i64
  %max = sext i32 %max32 to i64 ; -1, any number, is the largest when taken without a sign
  %few = icmp ult i64 %count, %min
  %many = icmp ugt i64 %count, %max
  %wrong = or i1 %few, %many
  br i1 %wrong, label %bad, label %go, !prof !1
bad:
  call void @esk_wrong_arity(ptr %ctx, ptr %self, i64 %count)
  unreachable
go:
  %function = call ptr @function_of(ptr %self)
  %more = icmp ugt i64 %count, 4
  %size = select i1 %more, i64 %count, i64 4
  %room = alloca %value, i64 %size
  call void @stored(ptr %room, i64 %t0, i64 %p0, i64 %t1, i64 %p1, i64 %t2, i64 %p2, i64 %t3, i64 %p3)
  br i1 %more, label %gather, label %call
gather:
  %unused = call ptr @gathered(ptr %ctx, i64 %count, ptr %room)
  br label %call
call:
  %v = call %value %function(ptr %ctx, ptr %room, i64 %count)
  ret %value %v
}

; a Python object as a procedure: the C function gets the closure, which has the object
define tailcc %value @"entry.%python-procedure"($ENTRY) {
  %more = icmp ugt i64 %count, 4
  %size = select i1 %more, i64 %count, i64 4
  %room = alloca %value, i64 %size
  call void @stored(ptr %room, i64 %t0, i64 %p0, i64 %t1, i64 %p1, i64 %t2, i64 %p2, i64 %t3, i64 %p3)
  br i1 %more, label %gather, label %call
gather:
  %unused = call ptr @gathered(ptr %ctx, i64 %count, ptr %room)
  br label %call
call:
  %v = call %value @esk_python_called(ptr %ctx, ptr %self, ptr %room, i64 %count)
  ret %value %v
}

; a procedure that is not compiled yet (tiers.py): the host compiles it and gives its closure the entry
define tailcc %value @"entry.later"($ENTRY) {
  call void @esk_make_ready(ptr %ctx, ptr %self, i64 %count)
$AGAIN
}

; (apply procedure argument ... list)
define tailcc %value @"entry.apply"($ENTRY) {
  %wrong = icmp ult i64 %count, 2
  br i1 %wrong, label %bad, label %go, !prof !1
bad:
  call void @esk_wrong_arity(ptr %ctx, ptr %self, i64 %count)
  unreachable
go:
  %direct = alloca [4 x %value]
  %n = call i64 @apply_arguments(ptr %ctx, i64 %count, i64 %t1, i64 %p1, i64 %t2, i64 %p2, i64 %t3, i64 %p3, ptr %direct)
  %tf = or i64 %t0, 0
  %pf = or i64 %p0, 0
$JUMP
}

define internal i64 @apply_arguments(ptr %ctx, i64 %count, i64 %t1, i64 %p1, i64 %t2, i64 %p2, i64 %t3, i64 %p3, ptr %direct) noinline {
  %more = icmp ugt i64 %count, 4
  %size = select i1 %more, i64 %count, i64 4
  %room = alloca %value, i64 %size
  call void @stored(ptr %room, i64 0, i64 0, i64 %t1, i64 %p1, i64 %t2, i64 %p2, i64 %t3, i64 %p3)
  br i1 %more, label %gather, label %spread
gather:
  %unused = call ptr @gathered(ptr %ctx, i64 %count, ptr %room)
  br label %spread
spread:
  %args = getelementptr i8, ptr %room, i64 16
  %given = sub i64 %count, 1
  %n = call i64 @esk_spread(ptr %ctx, ptr %args, i64 %given, ptr %direct)
  ret i64 %n
}

; (call-with-values producer consumer)
define tailcc %value @"entry.call-with-values"($ENTRY) {
  %right = icmp eq i64 %count, 2
  br i1 %right, label %check, label %bad, !prof !0
bad:
  call void @esk_wrong_arity(ptr %ctx, ptr %self, i64 %count)
  unreachable
check:
  %is = icmp eq i64 %t0, $TAG_PROCEDURE
  br i1 %is, label %go, label %not, !prof !0
not:
  call void @esk_not_procedure(ptr %ctx, i64 %t0, i64 %p0)
  unreachable
go:
  %direct = alloca [4 x %value]
  %f = inttoptr i64 %p0 to ptr
  %at = getelementptr i8, ptr %f, i64 $Closure.entry
  %entry = load ptr, ptr %at
  %made = call tailcc %value %entry($PASS(%f, 0))
  %tag = extractvalue %value %made, 0
  %bits = extractvalue %value %made, 1
  %n = call i64 @esk_spread_values(ptr %ctx, i64 %tag, i64 %bits, ptr %direct)
  %tf = or i64 %t1, 0
  %pf = or i64 %p1, 0
$JUMP
}

; (%call/cc receiver): the receiver gets the continuation, a closure with the entry below
define tailcc %value @"entry.%call/cc"($ENTRY) {
  %right = icmp eq i64 %count, 1
  br i1 %right, label %go, label %bad, !prof !0
bad:
  call void @esk_wrong_arity(ptr %ctx, ptr %self, i64 %count)
  unreachable
go:
  %is = icmp eq i64 %t0, $TAG_PROCEDURE
  br i1 %is, label %call, label %not, !prof !0
not:
  call void @esk_not_procedure(ptr %ctx, i64 %t0, i64 %p0)
  unreachable
call:
  %f = inttoptr i64 %p0 to ptr
  %v = musttail call tailcc %value @esk_call_cc($CONTEXT, ptr %f)
  ret %value %v
}

; (%call/ec receiver): the same, of a continuation that is only left to
define tailcc %value @"entry.%call/ec"($ENTRY) {
  %right = icmp eq i64 %count, 1
  br i1 %right, label %go, label %bad, !prof !0
bad:
  call void @esk_wrong_arity(ptr %ctx, ptr %self, i64 %count)
  unreachable
go:
  %is = icmp eq i64 %t0, $TAG_PROCEDURE
  br i1 %is, label %call, label %not, !prof !0
not:
  call void @esk_not_procedure(ptr %ctx, i64 %t0, i64 %p0)
  unreachable
call:
  %once = getelementptr i8, ptr %ctx, i64 $Context.once
  store i64 1, ptr %once
  %f = inttoptr i64 %p0 to ptr
  %v = musttail call tailcc %value @esk_call_cc($CONTEXT, ptr %f)
  ret %value %v
}

; a continuation. Where one cannot go on with it at once, the library's procedure gets it, and a list of the values.
define tailcc %value @"entry.%continuation"($ENTRY) {
  %one = icmp eq i64 %count, 1
  br i1 %one, label %near, label %far, !prof !0
near:
  call void @esk_continue(ptr %ctx, ptr %self, i64 %t0, i64 %p0)
  br label %far
far:
  %direct = alloca [4 x %value]
  call void @stored(ptr %direct, i64 %t0, i64 %p0, i64 %t1, i64 %p1, i64 %t2, i64 %p2, i64 %t3, i64 %p3)
  %list = call %value @esk_rest(ptr %ctx, i64 %count, i64 0, ptr %direct)
  %bits = ptrtoint ptr %self to i64
  %second = getelementptr i8, ptr %direct, i64 16
  store %value %list, ptr %second
  store i64 $TAG_PROCEDURE, ptr %direct
  %first = getelementptr i8, ptr %direct, i64 8
  store i64 %bits, ptr %first
  %leave = getelementptr i8, ptr %ctx, i64 $Context.leave
  %tf = load i64, ptr %leave
  %leave_bits = getelementptr i8, ptr %leave, i64 8
  %pf = load i64, ptr %leave_bits
  %n = add i64 0, 2
$JUMP
}

; from C
define void @invoke(ptr %ctx, ptr %target, i64 %n, ptr %args, ptr %result) {
  %few = icmp ult i64 %n, 4
  %direct_count = select i1 %few, i64 %n, i64 4
  %direct_bytes = shl i64 %direct_count, 4
  %direct = alloca [4 x %value]
  call void @llvm.memset.p0.i64(ptr %direct, i8 0, i64 64, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %direct, ptr %args, i64 %direct_bytes, i1 false)
  %extra_at = getelementptr i8, ptr %ctx, i64 $Context.extra
  %extra = load ptr, ptr %extra_at
  %rest = sub i64 %n, %direct_count
  %rest_bytes = shl i64 %rest, 4
  %behind = getelementptr i8, ptr %args, i64 64
  call void @llvm.memcpy.p0.p0.i64(ptr %extra, ptr %behind, i64 %rest_bytes, i1 false)
$WORDS
  %v = call tailcc %value %target_entry($PASS(%target, %n, %word0, %word1, %word2, %word3, %word4, %word5, %word6, %word7))
  store %value %v, ptr %result
  ret void
}
