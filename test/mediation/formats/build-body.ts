/** Builds and writes bodies in tests, with the default settings but for those that a test gives. */
import { BodyBuilder } from '../../../src/mediation/formats/body-builder.ts'
import { BodyFormatter, type WrittenBody } from '../../../src/mediation/formats/body-formatter.ts'
import { NO_CUSTOM_FORMATS } from '../../../src/mediation/formats/custom-format.ts'
import { FormatError } from '../../../src/mediation/formats/format-error.ts'
import type { FormatSettings } from '../../../src/mediation/formats/format-settings.ts'
import { DEFAULT_FORMATS } from './default-formats.ts'
import type { Payload } from '../../../src/mediation/message.ts'
import { writeXml } from '../../../src/mediation/xml-tree.ts'

export type GivenSettings = {
  readonly limits?: Partial<FormatSettings['limits']>
  readonly conversion?: Partial<FormatSettings['conversion']>
}

function settingsWith({ limits, conversion }: GivenSettings = {}): FormatSettings {
  return {
    ...DEFAULT_FORMATS,
    limits: { ...DEFAULT_FORMATS.limits, ...limits },
    conversion: { ...DEFAULT_FORMATS.conversion, ...conversion },
  }
}

export function build(
  bytes: Uint8Array | string,
  contentType: string,
  contentEncoding = '',
  settings: GivenSettings = {},
): Payload | null {
  const builder = new BodyBuilder(settingsWith(settings), NO_CUSTOM_FORMATS.builders)
  return builder.build({ body: { kind: 'bytes', bytes: Buffer.from(bytes) }, contentType, contentEncoding })
}

export function write(payload: Payload, contentType: string, settings: GivenSettings = {}): WrittenBody {
  const formatter = new BodyFormatter(settingsWith(settings), NO_CUSTOM_FORMATS.formatters)
  return formatter.format(payload, { messageType: contentType, contentType, soapAction: '' })
}

/** The payload as one text, for comparison. */
export function shown(payload: Payload | null): string {
  if (payload === null) return 'none'
  if (payload.kind === 'xml') return `xml ${writeXml(payload.root)}`
  return payload.kind === 'binary'
    ? `binary ${Buffer.from(payload.bytes).toString('hex')}`
    : `${payload.kind} ${payload.text}`
}

/** The error of the work, as `kind: message`; '' for none. */
export function errorOf(work: () => unknown): string {
  try {
    work()
    return ''
  } catch (error) {
    if (!(error instanceof FormatError)) throw error
    return `${error.kind}: ${error.message}`
  }
}
