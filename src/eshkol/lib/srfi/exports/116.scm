;;; What (srfi 116) and (scheme ilist) export.

(export
 ;; constructors
 iq ipair ilist xipair ipair* make-ilist ilist-tabulate ilist-copy iiota
 ;; predicates
 ipair? proper-ilist? ilist? dotted-ilist? not-ipair? null-ilist? ilist=
 ;; selectors
 icar icdr icaar icadr icdar icddr
 icaaar icaadr icadar icaddr icdaar icdadr icddar icdddr
 icaaaar icaaadr icaadar icaaddr icadaar icadadr icaddar icadddr
 icdaaar icdaadr icdadar icdaddr icddaar icddadr icdddar icddddr
 icar+icdr ilist-ref ifirst isecond ithird ifourth ififth isixth iseventh ieighth ininth itenth
 itake idrop ilist-tail itake-right idrop-right isplit-at ilast last-ipair
 ;; miscellaneous
 ilength iappend iconcatenate ireverse iappend-reverse izip iunzip1 iunzip2 iunzip3 iunzip4 iunzip5 icount iapply
 ;; fold, unfold, map
 imap imap-in-order ifor-each ifold ifold-right ipair-fold ipair-fold-right ireduce ireduce-right
 iunfold iunfold-right iappend-map ipair-for-each ifilter-map
 ;; filtering, searching, deleting
 ifilter ipartition iremove imember imemq imemv ifind ifind-tail iany ievery ilist-index
 itake-while idrop-while ispan ibreak idelete idelete-duplicates
 ;; association lists
 iassoc iassq iassv ialist-cons ialist-delete
 ;; other values in a place, and pairs that can be changed
 replace-icar replace-icdr pair->ipair ipair->pair list->ilist ilist->list
 tree->itree itree->tree gtree->itree gtree->tree
 ;; comparators
 ipair-comparator ilist-comparator make-ipair-comparator make-ilist-comparator make-improper-ilist-comparator
 make-icar-comparator make-icdr-comparator)
