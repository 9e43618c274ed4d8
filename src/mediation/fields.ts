/** Fields that sequences may give an answer (RFC 9110 5): which names, which values. */

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const NAME_MAX = 256
/** What says how the message is framed, what the connection is for, or is written by the gateway itself. */
const OURS = [
  ...['connection', 'content-length', 'date', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'transfer-encoding'],
  'upgrade',
]

/** Why an answer cannot have a field of this name; '' when it can. */
export function fieldFault(name: string): string {
  if (!TOKEN.test(name) || name.length > NAME_MAX) return 'is no field name'
  return OURS.includes(name.toLowerCase()) ? "is the gateway's own to say" : ''
}

const VALUE_MAX = 8192
/** No control characters, and nothing that is not one byte. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Why a field cannot have this value; '' when it can. */
export function valueFault(value: string): string {
  if (value.length > VALUE_MAX) return `is longer than ${VALUE_MAX} characters`
  return VALUE.test(value) ? '' : 'has characters that no field may have'
}
