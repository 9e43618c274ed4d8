import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../../src/mounted/healthcare/json-text.ts'
import { elementsOf, summaryOf, unknownElements } from '../../../src/mounted/healthcare/projection.ts'
import { hasErrors } from '../../../src/mounted/healthcare/outcome.ts'
import { validateResource } from '../../../src/mounted/healthcare/validation.ts'
import { fullService, serviceWith } from './service-example.ts'

const SUBSETTED = 'http://terminology.hl7.org/CodeSystem/v3-ObservationValue|SUBSETTED'

function tagsOf({ meta }: JsonObject): readonly string[] {
  const { tag } = meta as { readonly tag: readonly { readonly system: string; readonly code: string }[] }
  return tag.map(({ system, code }) => `${system}|${code}`)
}

function namesOf(resource: JsonObject): readonly string[] {
  return Object.keys(resource).toSorted()
}

test('_summary=true has the elements marked so, and no others', () => {
  const part = summaryOf(fullService(), 'true')
  const names =
    'active category comment id identifier location meta name photo providedBy resourceType specialty type'.split(' ')
  assert.deepEqual(namesOf(part), names)
})

test('_summary=true leaves the data of an attachment out', () => {
  assert.deepEqual(summaryOf(fullService(), 'true').photo, {
    ...{ contentType: 'image/png; charset=binary', size: 8, title: 'House' },
  })
})

test('_summary=text has text, id, meta and mandatory elements', () => {
  assert.deepEqual(namesOf(summaryOf(fullService(), 'text')), ['id', 'meta', 'resourceType', 'text'])
  const outcome = { resourceType: 'OperationOutcome', issue: [{ severity: 'error', code: 'invalid' }], language: 'en' }
  assert.deepEqual(namesOf(summaryOf(outcome, 'text')), ['issue', 'meta', 'resourceType'])
})

test('_summary=data has everything but the text', () => {
  const { text, ...data } = fullService()
  assert.ok(text !== undefined)
  assert.deepEqual(namesOf(summaryOf(fullService(), 'data')), namesOf(data))
})

test('_elements has the named elements, modifiers and mandatory ones, id and meta', () => {
  const part = elementsOf(fullService(), ['name', 'telecom'])
  assert.deepEqual(namesOf(part), ['active', 'id', 'meta', 'name', 'resourceType', 'telecom'])
})

test('_elements keeps extensions beside a named primitive', () => {
  const part = elementsOf(serviceWith({ name: 'x', _name: { id: 'a' }, comment: 'y', _comment: { id: 'b' } }), ['name'])
  assert.deepEqual(namesOf(part), ['_name', 'meta', 'name', 'resourceType'])
})

test('_elements names what the resource does not have', () => {
  assert.deepEqual(unknownElements('HealthcareService', ['name', 'colour', 'id']), ['colour'])
})

for (const mode of ['true', 'text', 'data'] as const) {
  test(`_summary=${mode} is tagged once as SUBSETTED, keeps other tags, and leaves the resource as it was`, () => {
    const service = fullService()
    const part = summaryOf(service, mode)
    assert.deepEqual(tagsOf(part), ['http://terminology.hl7.org/CodeSystem/v3-ActReason|HTEST', SUBSETTED])
    assert.deepEqual(tagsOf(summaryOf(part, mode)), tagsOf(part))
    assert.deepEqual(service, fullService())
  })
}

test('a projection of a resource without meta has one with the tag', () => {
  assert.deepEqual(tagsOf(elementsOf(serviceWith({}), ['name'])), [SUBSETTED])
})

test('projections are valid resources', () => {
  const { contained, coverageArea, ...service } = fullService()
  assert.ok(contained !== undefined && coverageArea !== undefined)
  for (const part of [summaryOf(service, 'true'), summaryOf(service, 'text'), elementsOf(service, ['telecom'])]) {
    assert.equal(hasErrors(validateResource(part, 'HealthcareService')), false)
  }
})
