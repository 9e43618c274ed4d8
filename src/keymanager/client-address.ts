/** Whom a request comes from, for limits and the log: as the listener has found out. */
import type { Context } from 'hono'
import type { KeyManager } from './key-manager.ts'

/** Counts a request against the limit of its address. Throws OAuthRefusal (429). */
export function admitAddress(manager: KeyManager, context: Context): string {
  const address = clientAddress(context)
  manager.rate.count(`address ${address}`, manager.settings.limits.perAddress)
  return address
}

export function clientAddress({ env }: Context): string {
  const { clientAddress: address } = env as { readonly clientAddress: string }
  return address
}
