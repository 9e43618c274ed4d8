/** Whom a request comes from, for limits and the log: the peer, or whom a trusted peer asks for. */
import { getConnInfo } from '@hono/node-server/conninfo'
import type { Context } from 'hono'
import { readNetwork } from '../config/cidr.ts'
import { plainAddress } from '../socket/address-book.ts'
import type { KeyManager } from './key-manager.ts'

/** Counts a request against the limit of its address. Throws OAuthRefusal (429). */
export function admitAddress(manager: KeyManager, context: Context): string {
  const address = clientAddress(manager, context)
  manager.rate.count(`address ${address}`, manager.settings.limits.perAddress)
  return address
}

export function clientAddress({ surroundings }: KeyManager, context: Context): string {
  const peer = plainAddress(getConnInfo(context).remote.address ?? '')
  const forwarded = context.req.header('x-forwarded-for')
  if (forwarded === undefined || !surroundings.isTrustedPeer(peer)) return peer
  // The last one is what the trusted peer itself has seen.
  const last = plainAddress(
    forwarded
      .slice(forwarded.lastIndexOf(',') + 1)
      .trim()
      .toLowerCase(),
  )
  return last.includes('/') || readNetwork(last) === '' ? peer : last
}
