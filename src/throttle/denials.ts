/** Decision of the deny policies on a request: asked by both filters, and again for open tunnels after each change. */
import { clientAddressOf } from '../auth/authenticator.ts'
import type { Api } from '../proxy/exchange/api.ts'
import type { Caller } from '../proxy/exchange/caller.ts'
import type { Exchange } from '../proxy/exchange/exchange.ts'
import type { DenyIndex } from './deny-index.ts'

/**
 * The address that limits and deny policies see: the peer, or behind a trusted proxy the last one of X-Forwarded-For.
 * Kept on the exchange, because the head is gone once a tunnel is open.
 */
export function countedAddress(exchange: Exchange): string {
  if (exchange.countedAddress === '') exchange.countedAddress = clientAddressOf(exchange)
  return exchange.countedAddress
}

/** True if a policy of the types APPLICATION, USER or SUBSCRIPTION names the caller. */
export function deniesCaller(denied: DenyIndex, { path }: Pick<Api, 'path'>, caller: Caller): boolean {
  if (caller.method !== 'none' && denied.has('USER') && denied.denies('USER', caller.user)) return true
  const { application } = caller
  if (application === null || application.owner === '') return false
  const name = `${application.owner}:${application.name}`
  return (
    (denied.has('APPLICATION') && denied.denies('APPLICATION', name)) ||
    (denied.has('SUBSCRIPTION') && denied.denies('SUBSCRIPTION', `${path}:${name}`))
  )
}

/** True if any policy denies the exchange. Only after the first filter has seen it. */
export function deniesExchange(denied: DenyIndex, { api, caller, countedAddress, clientAddress }: Exchange): boolean {
  if (api === null) return false
  if (denied.denies('API', api.path)) return true
  if (denied.deniesAddress(countedAddress === '' ? clientAddress : countedAddress)) return true
  return caller !== null && deniesCaller(denied, api, caller)
}
