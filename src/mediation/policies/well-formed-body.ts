/**
 * `<wellFormedBody json="true" xml="true"/>`: refuses bodies that do not parse as the type that they name
 * (`force_json_validation`, `force_xml_validation`), with the code of a malformed payload.
 */
import { namesSeveralTypes } from '../../http1/media-type.ts'
import { bodyFormatOf, isXmlFormat } from '../formats/body-types.ts'
import { mediator } from '../mediator.ts'
import type { SequencePlan } from '../sequence-plan.ts'
import { textOf } from '../value.ts'

/** Which bodies must parse. */
interface CheckedFormats {
  readonly json: boolean
  readonly xml: boolean
}

/** By the transport of the client. */
export type BodyChecks = Readonly<Record<'plain' | 'secured', CheckedFormats>>

export const wellFormedBody = mediator<CheckedFormats>({
  name: 'wellFormedBody',
  attributes: ['json', 'xml'],
  elements: [],
  parse(element, parser) {
    const [json, xml] = [parser.flag(element, 'json'), parser.flag(element, 'xml')]
    return json === undefined || xml === undefined ? undefined : { json, xml }
  },
  needs: () => 'worker',
  compile: settings => message => {
    const contentType = textOf(message.get('transport', 'content-type'))
    // Builds the payload, which throws where the body is malformed.
    if (isChecked(contentType, settings)) void message.payload
    return true
  },
})

/** The sequence that checks a request whose content type is checked. */
export const BODY_CHECK: SequencePlan = {
  name: '--well-formed-body--',
  label: 'force_json_validation, force_xml_validation',
  steps: [{ mediator: 'wellFormedBody', line: 1, settings: { json: true, xml: true } satisfies CheckedFormats }],
  onError: '',
  requestFields: [],
  calls: [],
  isDefault: false,
}

/** A request with this content type goes to a worker, whatever the flow of its API needs. */
export function isChecked(contentType: string, { json, xml }: CheckedFormats): boolean {
  const format = bodyFormatOf(contentType)
  if (namesSeveralTypes(contentType)) return json || xml
  return (json && (format === 'json' || format === 'badgerfish')) || (xml && isXmlFormat(format))
}
