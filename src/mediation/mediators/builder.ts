/** `<builder>`: builds the payload now, and not with its first read; a body that cannot be built fails. */
import { mediaTypeOf } from '../../http1/media-type.ts'
import { mediator } from '../mediator.ts'

interface BuilderSettings {
  /** Content types by that of the body: it is built as if it had the other one. */
  readonly types: Readonly<Record<string, string>>
}

/** Builders of the reference platform, by the last part of their class names, and the content type that each reads. */
const BUILDERS: readonly (readonly [RegExp, string])[] = [
  [/Json(?:Stream)?Builder$/i, 'application/json'],
  [/ApplicationXMLBuilder$/i, 'application/xml'],
  [/SOAPBuilder$/i, 'text/xml'],
  [/PlainTextBuilder$/i, 'text/plain'],
  [/BinaryRelayBuilder$|BinaryBuilder$/i, 'application/octet-stream'],
  [/FormURLEncodedBuilder$/i, 'application/x-www-form-urlencoded'],
  [/MultipartFormDataBuilder$|MIMEBuilder$/i, 'multipart/form-data'],
]

export const builder = mediator<BuilderSettings>({
  name: 'builder',
  attributes: [],
  elements: ['messageBuilder'],

  parse(element, parser) {
    const types: Record<string, string> = {}
    for (const child of element.children) {
      parser.checkAttributes(child, ['contentType', 'class', 'formatterClass'])
      parser.checkElements(child, [])
      const contentType = parser.required(child, 'contentType')
      const name = parser.required(child, 'class')
      const type = BUILDERS.find(([pattern]) => name !== undefined && pattern.test(name))?.[1]
      if (name !== undefined && type === undefined) {
        const hint = 'name a builder of JSON, XML, SOAP, plain text, forms or binary content'
        parser.error(child, 'class', 'is not a known builder', hint, name)
      }
      if (child.has('formatterClass')) {
        parser.warn(child, 'formatterClass', 'has no effect', 'set messageType for another format')
      }
      if (contentType !== undefined && type !== undefined) types[mediaTypeOf(contentType)] = type
    }
    return { types }
  },

  needs: () => 'worker',

  compile: ({ types }) => {
    return message => {
      const type = mediaTypeOf(message.receivedField('content-type') ?? '')
      message.build(Object.hasOwn(types, type) ? types[type]! : '')
      return true
    }
  },
})
