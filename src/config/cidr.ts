/**
 * Reads networks in CIDR notation strictly, because a misread trusted network lets strangers in. Returns normal forms
 * only; the callers match addresses.
 */

const V4 = /^(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})$/
const PREFIX = /^(0|[1-9]\d{0,2})$/

/** `address/prefix` in normal form; '' for a text that is no network. */
export function readNetwork(text: string): string {
  const slash = text.indexOf('/')
  const address = slash < 0 ? text : text.slice(0, slash)
  const isV6 = address.includes(':')
  const bytes = isV6 ? readV6(address) : readV4(address)
  if (bytes === undefined) return ''
  const bits = bytes.length * 8
  const prefixText = slash < 0 ? String(bits) : text.slice(slash + 1)
  if (!PREFIX.test(prefixText)) return ''
  const prefix = Number(prefixText)
  if (prefix > bits || hasHostBits(bytes, prefix)) return ''
  return `${isV6 ? normalV6(address) : address}/${prefix}`
}

function readV4(address: string): readonly number[] | undefined {
  const bytes = V4.exec(address)?.slice(1).map(Number)
  return bytes?.every(byte => byte <= 255) ? bytes : undefined
}

/** RFC 5952 form, from the URL parser; '' for a text that is no IPv6 address. */
function normalV6(address: string): string {
  return /^[0-9A-Fa-f:.]+$/.test(address) ? (URL.parse(`http://[${address}]/`)?.hostname.slice(1, -1) ?? '') : ''
}

function readV6(address: string): readonly number[] | undefined {
  const normal = normalV6(address)
  if (normal === '') return undefined
  const [head = '', tail = ''] = normal.split('::')
  const groupsOf = (part: string): string[] => (part === '' ? [] : part.split(':'))
  const missing = normal.includes('::') ? 8 - groupsOf(head).length - groupsOf(tail).length : 0
  const groups = [...groupsOf(head), ...Array<string>(missing).fill('0'), ...groupsOf(tail)]
  return groups.flatMap(group => {
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 255]
  })
}

function hasHostBits(bytes: readonly number[], prefix: number): boolean {
  return bytes.some((byte, index) => {
    const kept = Math.min(Math.max(prefix - index * 8, 0), 8)
    return (byte & (0xff >> kept)) !== 0
  })
}
