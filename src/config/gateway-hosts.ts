/** Names of hosts under which APIs are reached, in the form in which requests are compared with them. */
import type { Objection } from './api-syntax.ts'

/** RFC 1035 2.3.4 */
const HOST_CHARS_MAX = 253
const NAME = /^(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*$/
const ADDRESS = /^\[[0-9a-f:.]+\]$/

/** In lower case, without a port and without a dot at its end. */
export function plainHost(host: string): string {
  return host
    .trim()
    .toLowerCase()
    .replace(/:\d*$/, '')
    .replace(/(?<=.)\.$/, '')
}

export function hostFault(host: string): Objection | undefined {
  if (host.length <= HOST_CHARS_MAX && (NAME.test(host) || ADDRESS.test(host))) return undefined
  return ['expected the name of a host', 'for example api.example.com']
}
