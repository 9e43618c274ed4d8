/** Where a request comes from, for what is bound to a place or counted by it. */
import type { Exchange } from '../exchange/exchange.ts'
import { KIND } from '../http1/field-kinds.ts'
import { arena } from '../http1/llhttp.ts'
import { isAddress } from '../socket/address-book.ts'

/** Who sent it to the proxy of ours that hands it over, else whoever sent it. */
export function addressOf({ isTrusted, head, clientAddress }: Exchange): string {
  if (!isTrusted || !head!.has(KIND.X_FORWARDED_FOR)) return clientAddress
  const last = head!.list(arena.bytes, KIND.X_FORWARDED_FOR).split(',').at(-1)!.trim()
  return isAddress(last) ? last : clientAddress
}
