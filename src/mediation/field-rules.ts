/** Names and values of response fields that sequences may set (RFC 9110 5). */
import { isToken } from '../http1/token.ts'

const NAME_MAX = 256
/** Fields of framing and of the connection, and those that the gateway writes itself. */
const RESERVED = [
  ...['connection', 'content-length', 'date', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding'],
  'upgrade',
]

/** Reason why a response cannot have a field of this name, '' if it can. Removing a reserved field is harmless. */
export function fieldNameError(name: string, isRemoved = false): string {
  if (name.length > NAME_MAX || !isToken(name)) return 'is not a valid header field name'
  return !isRemoved && RESERVED.includes(name.toLowerCase()) ? 'is set by the gateway alone' : ''
}

const VALUE_MAX = 8192
/** Excludes control characters, and characters of more than one byte. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Reason why a field cannot have this value; '' if it can. */
export function fieldValueError(value: string): string {
  if (value.length > VALUE_MAX) return `is longer than ${VALUE_MAX} characters`
  return VALUE.test(value) ? '' : 'has characters that a header field cannot have'
}
