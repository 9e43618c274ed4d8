/** Rows of the standard's tables of elements, bindings and JSON rules (R4, healthcareservice.html, json.html). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { definitionOf } from '../../../src/mounted/healthcare/definition-table.ts'
import { readJson } from '../../../src/mounted/healthcare/json-text.ts'
import { SEARCH_PARAMETERS } from '../../../src/mounted/healthcare/search-parameters.ts'
import { validateResource } from '../../../src/mounted/healthcare/validation.ts'
import { NARRATIVE, serviceWith } from './service-example.ts'

const NARRATIVE_TEXT = JSON.stringify(NARRATIVE)

/** Types of `Extension.value[x]` (datatypes.html#open). */
const VALUE_TYPES =
  'base64Binary boolean canonical code date dateTime decimal id instant integer markdown oid positiveInt string time ' +
  'unsignedInt uri url uuid Address Age Annotation Attachment CodeableConcept Coding ContactPoint Count Distance ' +
  'Duration HumanName Identifier Money Period Quantity Range Ratio Reference SampledData Signature Timing ' +
  'ContactDetail Contributor DataRequirement Expression ParameterDefinition RelatedArtifact TriggerDefinition ' +
  'UsageContext Dosage Meta'

test('an extension has a value of each of the 50 types, and of no other', () => {
  const { jsonNames } = definitionOf('Extension')!.elements.find(({ name }) => name === 'value')!
  const names = VALUE_TYPES.split(' ').map(type => `value${type[0]!.toUpperCase()}${type.slice(1)}`)
  assert.deepEqual([...jsonNames].toSorted(), names.toSorted())
})

const SIGNER = 'Reference(Practitioner,PractitionerRole,RelatedPerson,Patient,Device,Organization)'
/** Name, cardinality and type of each element; without those of the bases. */
const SHAPES: Readonly<Record<string, string>> = {
  Signature:
    `type 1..* Coding; when 1..1 instant; who 1..1 ${SIGNER}; onBehalfOf 0..1 ${SIGNER}; ` +
    'targetFormat 0..1 code; sigFormat 0..1 code; data 0..1 base64Binary',
  OperationOutcome: 'issue 1..* OperationOutcome.issue',
}
for (const [name, shape] of Object.entries(SHAPES)) {
  test(`${name} has the elements of the standard`, () => {
    const { elements, members } = definitionOf(name)!
    const inherited = [...definitionOf('DomainResource')!.elements, ...definitionOf('Element')!.elements]
    const own = elements.filter(element => !inherited.some(({ name }) => name === element.name))
    const rows = own.map(({ name, jsonNames, isRequired, isList }) => {
      const { type, targets } = members.get(jsonNames[0]!)!
      const target = targets.length === 0 ? '' : `(${targets.join(',')})`
      return `${name} ${isRequired ? 1 : 0}..${isList ? '*' : 1} ${type}${target}`
    })
    assert.deepEqual(rows.toSorted(), shape.split('; ').toSorted())
  })
}

test('a Bundle has the elements of Resource, and none of DomainResource', () => {
  const names = definitionOf('Bundle')!.elements.map(({ name }) => name)
  assert.deepEqual(names.slice(0, 4).toSorted(), ['id', 'implicitRules', 'language', 'meta'])
  for (const name of ['text', 'contained', 'extension']) assert.ok(!names.includes(name), name)
})

test('notAvailable.description is the only mandatory element of HealthcareService', () => {
  const types = ['', '.eligibility', '.availableTime', '.notAvailable'].map(part => `HealthcareService${part}`)
  const mandatory = types.flatMap(type =>
    definitionOf(type)!.elements.flatMap(({ name, isRequired }) => (isRequired ? [`${type}.${name}`] : [])),
  )
  assert.deepEqual(mandatory, ['HealthcareService.notAvailable.description'])
})

for (const part of ['eligibility', 'availableTime', 'notAvailable']) {
  test(`${part} has id, extension and modifierExtension`, () => {
    const extension = [{ url: 'urn:x', valueCode: 'y' }]
    const more = part === 'notAvailable' ? { description: 'x' } : {}
    const issues = validateResource(
      serviceWith({ [part]: [{ id: 'p1', extension, modifierExtension: extension, ...more }] }),
    )
    assert.deepEqual(issues, [])
  })
}

/** Elements whose binding is extensible, preferred or an example: an unknown code is at most a warning. */
const BOUND: readonly (readonly [element: string, value: unknown])[] = [
  ...[
    ...['category', 'type', 'specialty', 'serviceProvisionCode', 'program', 'characteristic'],
    ...['communication', 'referralMethod'],
  ].map(name => [name, [{ coding: [{ system: 'urn:own', code: 'unknown' }] }]] as const),
  ['eligibility', [{ code: { coding: [{ system: 'urn:own', code: 'unknown' }] } }]],
  ['language', 'x-unknown'],
  ['identifier', [{ type: { coding: [{ system: 'urn:own', code: 'unknown' }] }, value: '1' }]],
  ['meta', { security: [{ system: 'urn:own', code: 'unknown' }], tag: [{ code: 'unknown' }] }],
  ['extension', [{ url: 'urn:x', valueReference: { type: 'urn:own:Type', display: 'x' } }]],
]
for (const [element, value] of BOUND) {
  test(`an unknown code in ${element}, which has no required binding, is no error`, () => {
    const issues = validateResource(serviceWith({ [element]: value }))
    assert.deepEqual(
      issues.filter(({ severity }) => severity !== 'warning'),
      [],
    )
  })
}

for (const name of ['programName', 'eligibilityNote', 'offeredIn', 'contact', 'availability']) {
  test(`${name} of another release is an unknown element`, () => {
    const issues = validateResource(serviceWith({ [name]: [{ text: 'x' }] }))
    assert.deepEqual(
      issues.map(({ code, expression }) => [code, expression]),
      [['structure', `HealthcareService.${name}`]],
    )
  })
}

for (const text of [
  `{"text":${NARRATIVE_TEXT},"name":"x","resourceType":"HealthcareService"}`,
  `{"active":true,"resourceType":"HealthcareService","text":${NARRATIVE_TEXT},"id":"a"}`,
]) {
  test(`resourceType may stand anywhere, and members in any order: ${text.slice(0, 30)}…`, () => {
    assert.deepEqual(validateResource(readJson(text), 'HealthcareService'), [])
  })
}

test('one fullUrl with two versions is no repetition in a collection (bdl-7)', () => {
  const fullUrl = 'http://a/HealthcareService/a'
  const versions = ['1', '2'].map(versionId => ({ fullUrl, resource: serviceWith({ id: 'a', meta: { versionId } }) }))
  const bundle = (entry: readonly object[]) => validateResource({ resourceType: 'Bundle', type: 'collection', entry })
  assert.deepEqual(bundle(versions), [])
  assert.equal(bundle([versions[0]!, versions[0]!])[0]?.detail, 'bdl-7')
})

/** Search parameters of the standard: type, path, target (healthcareservice.html#search, resource.html#search). */
const PARAMETERS = `
active token active
characteristic token characteristic
coverage-area reference coverageArea Location
endpoint reference endpoint Endpoint
identifier token identifier
location reference location Location
name string name
organization reference providedBy Organization
program token program
service-category token category
service-type token type
specialty token specialty
_id token id
_lastUpdated date meta.lastUpdated
_tag token meta.tag
_security token meta.security
_profile uri meta.profile
_source uri meta.source`

test('the search parameters have the types, paths and targets of the standard, and there are no others', () => {
  const rows = [...SEARCH_PARAMETERS.values()].map(({ name, type, path, target }) =>
    `${name} ${type} ${path.join('.')} ${target}`.trim(),
  )
  assert.deepEqual(rows.toSorted(), PARAMETERS.trim().split('\n').toSorted())
})
