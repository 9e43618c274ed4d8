/** Which names of hosts APIs may be reached under. */
import type { Objection } from './api-syntax.ts'

/** RFC 1035 2.3.4 */
const HOST_CHARS_MAX = 253
const NAME = /^(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*$/
const ADDRESS = /^\[[0-9a-f:.]+\]$/

/** `host`: as `hostName` has it. */
export function hostFault(host: string): Objection | undefined {
  if (host.length <= HOST_CHARS_MAX && (NAME.test(host) || ADDRESS.test(host))) return undefined
  return ['expected the name of a host', 'for example api.example.com']
}
