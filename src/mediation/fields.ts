/** Fields that sequences may give an answer (RFC 9110 5): which names, which values. */
import { isToken } from '../http1/token.ts'

const NAME_MAX = 256
/** What says how the message is framed, what the connection is for, or is written by the gateway itself. */
const OURS = [
  ...['connection', 'content-length', 'date', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding'],
  'upgrade',
]

/** Why an answer cannot have a field of this name; '' when it can. Nothing says that it must: removed are all. */
export function fieldFault(name: string, isRemoved = false): string {
  if (name.length > NAME_MAX || !isToken(name)) return 'is no field name'
  return !isRemoved && OURS.includes(name.toLowerCase()) ? "is the gateway's own to say" : ''
}

const VALUE_MAX = 8192
/** No control characters, and nothing that is not one byte. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Why a field cannot have this value; '' when it can. */
export function valueFault(value: string): string {
  if (value.length > VALUE_MAX) return `is longer than ${VALUE_MAX} characters`
  return VALUE.test(value) ? '' : 'has characters that no field may have'
}
