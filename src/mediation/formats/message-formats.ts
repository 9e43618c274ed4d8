/**
 * Bodies of messages in a worker thread: built when a sequence reads them, written when they go on changed, with the
 * content coding that they had.
 */
import { writtenPayload } from '../json-xml.ts'
import { MediationFault } from '../mediation-fault.ts'
import type { BodySource, Message } from '../message.ts'
import { becomesResponse, type FormattedBody } from '../message-transfer.ts'
import { textOf } from '../value.ts'
import type { TransferredMessage } from '../worker-task.ts'
import { BodyBuilder } from './body-builder.ts'
import type { HeldBody } from './body-bytes.ts'
import { BodyFormatter } from './body-formatter.ts'
import type { BodyLimits } from './body-limits.ts'
import { bodyFormatOf, namedType, typeOfPayload } from './body-types.ts'
import { parameterOf } from './charset.ts'
import { encodeContent } from './content-coding.ts'
import type { CustomFormats } from './custom-format.ts'
import { FormatError, faultOfFormat } from './format-error.ts'
import type { FormatSettings } from './format-settings.ts'

/** Fields about bytes that were replaced (RFC 9530, RFC 1864). */
const DIGESTS = ['content-md5', 'content-digest', 'repr-digest', 'digest']

export class MessageFormats {
  readonly limits: BodyLimits
  readonly #builder: BodyBuilder
  readonly #formatter: BodyFormatter

  constructor(settings: FormatSettings, custom: CustomFormats) {
    this.limits = settings.limits
    this.#builder = new BodyBuilder(settings, custom.builders)
    this.#formatter = new BodyFormatter(settings, custom.formatters)
  }

  /** Source of a transferred body; null for none. */
  sourceOf({ body, fields, status }: TransferredMessage): BodySource | null {
    if (body.kind !== 'bytes' && body.kind !== 'file') return null
    // A type that is given twice is one; two types are an error where the body is read.
    const type = [...new Set(valuesOf(fields, 'content-type'))].join(', ')
    return this.source(body, type, valuesOf(fields, 'content-encoding').join(', '), status !== 0)
  }

  /** `isResponse`: the body came from a backend. `contentEncoding`: '' for none. */
  source(body: HeldBody, contentType: string, contentEncoding: string, isResponse: boolean): BodySource {
    return {
      build: wanted => {
        const received = { body, contentType: wanted || contentType, contentEncoding }
        return asFault(isResponse, () => this.#builder.build(received))
      },
      text: () => asFault(isResponse, () => this.#builder.text({ body, contentType, contentEncoding })),
    }
  }

  /**
   * Writes the payload in the format of messageType, else of Content-Type, else of the payload. Sets and
   * removes the fields of the message that are about the body. Throws MediationFault.
   */
  format(message: Message): FormattedBody {
    const { payload } = message
    if (payload === null) return { body: { kind: 'none' }, contentType: '' }
    const property = (name: string) => namedType(textOf(message.get('axis2', name)))
    const field = (name: string) => textOf(message.get('transport', name))
    const named = property('messageType') || property('ContentType') || namedType(field('content-type'))
    const messageType = named || typeOfPayload(payload)
    const contentType = property('ContentType') || messageType
    const wanted = { messageType, contentType, soapAction: field('soapaction') || actionOf(contentType, message) }
    const isResponse = message.receivedHead.status !== 0
    return asFault(isResponse, () => {
      const written = this.#formatter.format(writtenPayload(message, bodyFormatOf(messageType)) ?? payload, wanted)
      const accepted = isResponse || !becomesResponse(message) ? null : (message.receivedField('accept-encoding') ?? '')
      const before = field('content-encoding')
      const coded = encodeContent(written.bytes, before, accepted)
      if (before !== '' && coded.contentEncoding === '') message.remove('transport', 'Content-Encoding')
      for (const name of DIGESTS) if (message.receivedField(name) !== undefined) message.remove('transport', name)
      this.#setAction(message, written.soapAction, bodyFormatOf(messageType) === 'soap12')
      return { body: { kind: 'bytes', bytes: coded.bytes }, contentType: written.contentType }
    })
  }

  /** A request in SOAP 1.1 needs the field (SOAP 1.1 6.1.1); in SOAP 1.2 the type carries the action. */
  #setAction(message: Message, action: string | null, isSoap12: boolean): void {
    const isRequest = message.receivedHead.status === 0 && !becomesResponse(message)
    if (action !== null && isRequest) message.set('transport', 'SOAPAction', action)
    else if (isSoap12 && message.get('transport', 'soapaction') !== undefined) message.remove('transport', 'SOAPAction')
  }
}

/** The action in the content type, or in that of the SOAP 1.2 that was received (RFC 3902); '' for none. */
function actionOf(contentType: string, message: Message): string {
  const received = message.receivedField('content-type') ?? ''
  const named = parameterOf(contentType, 'action')
  return named === '' && bodyFormatOf(received) === 'soap12' ? parameterOf(received, 'action') : named
}

function valuesOf(fields: TransferredMessage['fields'], name: string): string[] {
  return fields.filter(([each]) => each.length === name.length && each.toLowerCase() === name).map(([, value]) => value)
}

function asFault<T>(isResponse: boolean, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof FormatError)) throw error
    throw new MediationFault(faultOfFormat(error, isResponse))
  }
}
