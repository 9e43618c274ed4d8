/**
 * The PROXY protocol, versions 1 and 2: the header in front of a connection in which a proxy tells whose connection it
 * is (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt). Reads both versions, and writes version 2.
 */
import { isIP } from 'node:net'
import { normalAddress, unmappedAddress } from '../runtime/ip-address.ts'

/** Both ends of a client's connection, as numeric addresses. */
export interface ConnectionAddresses {
  readonly source: string
  readonly sourcePort: number
  readonly destination: string
  readonly destinationPort: number
}

/** Null where an end is not known any more. */
export function connectionAddresses(
  source = '',
  sourcePort = 0,
  destination = '',
  destinationPort = 0,
): ConnectionAddresses | null {
  if (source === '' || destination === '') return null
  return {
    source: unmappedAddress(source),
    sourcePort,
    destination: unmappedAddress(destination),
    destinationPort,
  }
}

interface ProxyHeader {
  /** Bytes of the header; those behind it are the client's. */
  readonly length: number
  /** Null: the proxy names no client, and speaks for itself. */
  readonly addresses: ConnectionAddresses | null
}

/** A header of version 1, with its CRLF (section 2.1). */
const V1_BYTES_MAX = 107
/** A header of version 2, with its TLVs. */
const HEADER_BYTES_MAX = 4096
const V1_START = Buffer.from('PROXY ')
const V2_SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
/** Signature, version and command, family, length. */
const V2_HEAD = 16
const LOCAL = 0x20
const PROXY = 0x21
const UNSPECIFIED = 0x00
const TCP4 = 0x11
const TCP6 = 0x21
/** Bytes of addresses and ports by family. */
const ADDRESS_BYTES: Readonly<Record<number, number>> = { [UNSPECIFIED]: 0, [TCP4]: 12, [TCP6]: 36 }

const NO_SIGNATURE = 'no PROXY header'
const V1_LINE = /^PROXY (TCP4|TCP6) (\S+) (\S+) (\d+) (\d+)\r\n$/
const V1_UNKNOWN = /^PROXY UNKNOWN(?: [^\r\n]*)?\r\n$/
const V1_PORT = /^(?:0|[1-9]\d{0,4})$/
const PORT_MAX = 65_535

/** Null while more bytes are needed; text for bytes that are no header, with what is wrong. */
export function readProxyHeader(bytes: Buffer): ProxyHeader | string | null {
  if (startsAs(bytes, V1_START)) return bytes.length < V1_START.length ? null : readV1(bytes)
  if (startsAs(bytes, V2_SIGNATURE)) return bytes.length < V2_SIGNATURE.length ? null : readV2(bytes)
  return NO_SIGNATURE
}

/** True if the bytes begin with `start`, as far as they go. */
function startsAs(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length)
  return bytes.compare(start, 0, length, 0, length) === 0
}

function readV1(bytes: Buffer): ProxyHeader | string | null {
  const end = bytes.subarray(0, V1_BYTES_MAX).indexOf('\n')
  if (end < 0) return bytes.length < V1_BYTES_MAX ? null : `a header of version 1 has at most ${V1_BYTES_MAX} bytes`
  const line = bytes.latin1Slice(0, end + 1)
  if (V1_UNKNOWN.test(line)) return { length: line.length, addresses: null }
  const [, protocol, source = '', destination = '', sourcePort = '', destinationPort = ''] = V1_LINE.exec(line) ?? []
  const family = protocol === 'TCP4' ? 4 : 6
  const isValid =
    protocol !== undefined &&
    [source, destination].every(address => isIP(address) === family && !address.includes('%')) &&
    [sourcePort, destinationPort].every(port => V1_PORT.test(port) && Number(port) <= PORT_MAX)
  if (!isValid) return 'a malformed header of version 1'
  return {
    length: line.length,
    addresses: {
      source: normalAddress(source),
      sourcePort: Number(sourcePort),
      destination: normalAddress(destination),
      destinationPort: Number(destinationPort),
    },
  }
}

function readV2(bytes: Buffer): ProxyHeader | string | null {
  const command = bytes[12] ?? PROXY
  if (command !== LOCAL && command !== PROXY) return `an unknown version or command 0x${command.toString(16)}`
  const family = bytes[13] ?? UNSPECIFIED
  const addressBytes = ADDRESS_BYTES[family]
  // The family of LOCAL means nothing (section 2.2).
  if (command === PROXY && addressBytes === undefined) return `family 0x${family.toString(16)}, which is not TCP`
  if (bytes.length < V2_HEAD) return null
  const length = V2_HEAD + bytes.readUInt16BE(14)
  if (length > HEADER_BYTES_MAX) return `a header of ${length} bytes; at most ${HEADER_BYTES_MAX} are read`
  if (command === PROXY && length < V2_HEAD + addressBytes!)
    return 'a header of version 2 that is shorter than its addresses'
  if (bytes.length < length) return null
  if (command === LOCAL || family === UNSPECIFIED) return { length, addresses: null }
  const size = family === TCP4 ? 4 : 16
  const ports = V2_HEAD + 2 * size
  return {
    length,
    addresses: {
      source: addressIn(bytes, V2_HEAD, size),
      sourcePort: bytes.readUInt16BE(ports),
      destination: addressIn(bytes, V2_HEAD + size, size),
      destinationPort: bytes.readUInt16BE(ports + 2),
    },
  }
}

function addressIn(bytes: Buffer, at: number, size: number): string {
  if (size === 4) return bytes.subarray(at, at + 4).join('.')
  const groups = Array.from({ length: 8 }, (_, group) => bytes.readUInt16BE(at + 2 * group).toString(16))
  return normalAddress(groups.join(':'))
}

/** A header of version 2. Null: the connection is the gateway's own. */
export function proxyHeader(addresses: ConnectionAddresses | null): Buffer {
  const family = addresses === null ? 0 : isIP(addresses.source)
  if (addresses === null || family === 0 || isIP(addresses.destination) !== family) {
    return Buffer.concat([V2_SIGNATURE, Buffer.from([addresses === null ? LOCAL : PROXY, UNSPECIFIED, 0, 0])])
  }
  const [code, size] = family === 4 ? [TCP4, 4] : [TCP6, 16]
  const bytes = Buffer.alloc(V2_HEAD + 2 * size + 4)
  V2_SIGNATURE.copy(bytes)
  bytes[12] = PROXY
  bytes[13] = code
  bytes.writeUInt16BE(2 * size + 4, 14)
  putAddress(bytes, V2_HEAD, addresses.source)
  putAddress(bytes, V2_HEAD + size, addresses.destination)
  bytes.writeUInt16BE(addresses.sourcePort, V2_HEAD + 2 * size)
  bytes.writeUInt16BE(addresses.destinationPort, V2_HEAD + 2 * size + 2)
  return bytes
}

function putAddress(bytes: Buffer, at: number, address: string): void {
  if (isIP(address) === 4) {
    bytes.set(address.split('.').map(Number), at)
    return
  }
  // The form of RFC 5952 without dots; a link-local address may name its interface.
  const [start = '', end = ''] = URL.parse(`http://[${address.replace(/%.*/, '')}]/`)!
    .hostname.slice(1, -1)
    .split('::')
  const [first, last] = [start, end].map(part => (part === '' ? [] : part.split(':'))) as [string[], string[]]
  const zeros = new Array<string>(8 - first.length - last.length).fill('0')
  const groups = [...first, ...zeros, ...last]
  for (const [group, text] of groups.entries()) bytes.writeUInt16BE(Number.parseInt(text, 16), at + 2 * group)
}
