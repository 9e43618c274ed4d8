import assert from 'node:assert/strict'
import { test } from 'node:test'
import { elementsAt, ElementPathError, parseElementPath } from '../../../src/mounted/healthcare/element-path.ts'
import { applyFhirPathPatch } from '../../../src/mounted/healthcare/fhirpath-patch.ts'
import type { JsonObject } from '../../../src/mounted/healthcare/json-text.ts'
import { PatchError } from '../../../src/mounted/healthcare/patch-result.ts'
import { validateResource } from '../../../src/mounted/healthcare/validation.ts'
import { fullService, serviceWith } from './service-example.ts'

type Parts = Readonly<Record<string, unknown>>

/** Types of the values of parts. A part `value` gives a name of its own, such as valueString, or an array of parts. */
const TYPES: Readonly<Record<string, string>> = {
  ...{ type: 'valueCode', path: 'valueString', name: 'valueString' },
  ...{ index: 'valueInteger', source: 'valueInteger', destination: 'valueInteger' },
}

function operation(parts: Parts): JsonObject {
  const part = Object.entries(parts).map(([name, value]) => {
    if (Array.isArray(value)) return { name, part: value }
    return name === 'value' ? { name, ...(value as object) } : { name, [TYPES[name] ?? 'valueString']: value }
  })
  return { name: 'operation', part }
}

/** The patch is valid as a Parameters resource, as a request must be. */
function patch(...operations: readonly Parts[]): JsonObject {
  const parameters = { resourceType: 'Parameters', parameter: operations.map(operation) }
  assert.deepEqual(validateResource(parameters, 'Parameters'), [])
  return parameters
}

function situationOf(resource: JsonObject, parameters: JsonObject): string {
  try {
    applyFhirPathPatch(resource, parameters)
  } catch (error) {
    if (error instanceof PatchError) return error.situation
    throw error
  }
  return 'applied'
}

const phone = { system: 'phone', value: '1' }
const email = { system: 'email', value: 'a@b' }
const identifiers = (...values: readonly string[]): readonly JsonObject[] => values.map(value => ({ value }))
const days = (...daysOfWeek: readonly string[]): JsonObject => ({ availableTime: [{ daysOfWeek }] })
const H = 'HealthcareService'

/** Elements before and behind a patch. */
const PATCHES: readonly (readonly [title: string, before: JsonObject, operation: Parts, after: JsonObject])[] = [
  [
    'add sets an element that is not there',
    {},
    { type: 'add', path: H, name: 'name', value: { valueString: 'x' } },
    { name: 'x' },
  ],
  [
    'add makes a list',
    {},
    { type: 'add', path: H, name: 'telecom', value: { valueContactPoint: phone } },
    { telecom: [phone] },
  ],
  [
    'add appends to a list',
    { telecom: [phone] },
    { type: 'add', path: H, name: 'telecom', value: { valueContactPoint: email } },
    { telecom: [phone, email] },
  ],
  [
    'add sets a child of a found element',
    { telecom: [phone, email] },
    { type: 'add', path: `${H}.telecom.where(system = 'email')`, name: 'use', value: { valueCode: 'work' } },
    { telecom: [phone, { ...email, use: 'work' }] },
  ],
  [
    'add builds a backbone element of parts',
    {},
    {
      type: 'add',
      path: H,
      name: 'notAvailable',
      value: [
        { name: 'description', valueString: 'x' },
        { name: 'during', valuePeriod: { start: '2024' } },
      ],
    },
    { notAvailable: [{ description: 'x', during: { start: '2024' } }] },
  ],
  [
    'add builds lists of parts with one name',
    {},
    {
      type: 'add',
      path: H,
      name: 'availableTime',
      value: [
        { name: 'daysOfWeek', valueCode: 'mon' },
        { name: 'daysOfWeek', valueCode: 'tue' },
      ],
    },
    days('mon', 'tue'),
  ],
  [
    'add names the type of a choice',
    { extension: [{ url: 'urn:x' }] },
    { type: 'add', path: `${H}.extension('urn:x')`, name: 'value', value: { valueDecimal: 1.5 } },
    { extension: [{ url: 'urn:x', valueDecimal: 1.5 }] },
  ],
  [
    'insert puts an item before another',
    { identifier: identifiers('1', '3') },
    { type: 'insert', path: `${H}.identifier`, index: 1, value: { valueIdentifier: { value: '2' } } },
    { identifier: identifiers('1', '2', '3') },
  ],
  [
    'insert puts an item at the end',
    { identifier: identifiers('1') },
    { type: 'insert', path: `${H}.identifier`, index: 1, value: { valueIdentifier: { value: '2' } } },
    { identifier: identifiers('1', '2') },
  ],
  [
    'insert makes a list',
    {},
    { type: 'insert', path: `${H}.identifier`, index: 0, value: { valueIdentifier: { value: '2' } } },
    { identifier: identifiers('2') },
  ],
  [
    'insert puts a primitive item',
    days('mon', 'wed'),
    { type: 'insert', path: `${H}.availableTime[0].daysOfWeek`, index: 1, value: { valueCode: 'tue' } },
    days('mon', 'tue', 'wed'),
  ],
  ['delete removes an element', { name: 'x', comment: 'y' }, { type: 'delete', path: `${H}.name` }, { comment: 'y' }],
  [
    'delete removes an element with its extensions',
    { name: 'x', _name: { id: 'a' } },
    { type: 'delete', path: `${H}.name` },
    {},
  ],
  [
    'delete removes an item',
    { identifier: identifiers('1', '2') },
    { type: 'delete', path: `${H}.identifier[0]` },
    { identifier: identifiers('2') },
  ],
  [
    'delete removes the last item with its list',
    { identifier: identifiers('1') },
    { type: 'delete', path: `${H}.identifier.where(value = '1')` },
    {},
  ],
  [
    'delete removes a primitive item',
    days('mon', 'tue'),
    { type: 'delete', path: `${H}.availableTime.daysOfWeek.where($this = 'mon')` },
    days('tue'),
  ],
  ['delete of nothing changes nothing', { name: 'x' }, { type: 'delete', path: `${H}.comment` }, { name: 'x' }],
  [
    'replace changes a value',
    { name: 'x' },
    { type: 'replace', path: `${H}.name`, value: { valueString: 'y' } },
    { name: 'y' },
  ],
  [
    'replace changes a value in a list',
    { telecom: [phone, email] },
    { type: 'replace', path: `${H}.telecom.where(system = 'email').value`, value: { valueString: 'c@d' } },
    { telecom: [phone, { ...email, value: 'c@d' }] },
  ],
  [
    'replace changes an item',
    { telecom: [phone] },
    { type: 'replace', path: `${H}.telecom.first()`, value: { valueContactPoint: email } },
    { telecom: [email] },
  ],
  [
    'replace changes the type of a choice',
    { extension: [{ url: 'u', valueString: 'x' }] },
    { type: 'replace', path: `${H}.extension[0].value`, value: { valueBoolean: true } },
    { extension: [{ url: 'u', valueBoolean: true }] },
  ],
  [
    'replace changes a primitive item',
    days('mon', 'tue'),
    { type: 'replace', path: `${H}.availableTime.daysOfWeek[1]`, value: { valueCode: 'sun' } },
    days('mon', 'sun'),
  ],
  [
    'move takes an item to another place',
    { identifier: identifiers('1', '2', '3') },
    { type: 'move', path: `${H}.identifier`, source: 0, destination: 2 },
    { identifier: identifiers('2', '3', '1') },
  ],
  [
    'move takes extensions with their values',
    { availableTime: [{ daysOfWeek: ['mon', 'tue'], _daysOfWeek: [{ id: 'a' }, null] }] },
    { type: 'move', path: `${H}.availableTime.daysOfWeek`, source: 1, destination: 0 },
    { availableTime: [{ daysOfWeek: ['tue', 'mon'], _daysOfWeek: [null, { id: 'a' }] }] },
  ],
]

for (const [title, before, parts, after] of PATCHES) {
  test(title, () => {
    const resource = { resourceType: H, ...before }
    assert.deepEqual(applyFhirPathPatch(resource, patch(parts)), { resourceType: H, ...after })
    assert.deepEqual(resource, { resourceType: H, ...before })
  })
}

/** A Parameters resource takes an extension as parts: it is no type of value[x]. */
const extension = [
  { name: 'url', valueUri: 'urn:x' },
  { name: 'value', valueCode: 'y' },
]

for (const [title, before, path, after] of [
  ['a value', { name: 'x' }, '.name', { name: 'x', _name: { extension: [{ url: 'urn:x', valueCode: 'y' }] } }],
  [
    'an item of a list',
    days('mon', 'tue'),
    '.availableTime.daysOfWeek[1]',
    {
      availableTime: [
        { daysOfWeek: ['mon', 'tue'], _daysOfWeek: [null, { extension: [{ url: 'urn:x', valueCode: 'y' }] }] },
      ],
    },
  ],
] as const) {
  test(`add sets an extension of ${title} that is primitive`, () => {
    const resource = { resourceType: H, ...before }
    const parameters = patch({ type: 'add', path: `${H}${path}`, name: 'extension', value: extension })
    assert.deepEqual(applyFhirPathPatch(resource, parameters), { resourceType: H, ...after })
  })
}

const TWO = serviceWith({ id: 'a', meta: { versionId: '1' }, name: 'x', telecom: [phone, email] })
const value = { valueString: 'y' }

for (const [title, parts] of [
  ['an add where nothing is', { type: 'add', path: `${H}.photo`, name: 'title', value }],
  ['an add to several elements', { type: 'add', path: `${H}.telecom`, name: 'value', value }],
  ['an add of an element that is there', { type: 'add', path: H, name: 'name', value }],
  ['an add of an unknown element', { type: 'add', path: H, name: 'colour', value }],
  ['an add of __proto__', { type: 'add', path: H, name: '__proto__', value }],
  [
    'an add of a part of __proto__',
    { type: 'add', path: H, name: 'notAvailable', value: [{ name: '__proto__', valueString: 'x' }] },
  ],
  [
    'an insert beyond the list',
    { type: 'insert', path: `${H}.telecom`, index: 3, value: { valueContactPoint: phone } },
  ],
  ['a negative index', { type: 'insert', path: `${H}.telecom`, index: -1, value: { valueContactPoint: phone } }],
  ['an insert into no list', { type: 'insert', path: `${H}.name`, index: 0, value }],
  ['a delete of several elements', { type: 'delete', path: `${H}.telecom` }],
  ['a delete of the resource', { type: 'delete', path: H }],
  ['a replacement of the resource', { type: 'replace', path: H, value }],
  ['a replacement of nothing', { type: 'replace', path: `${H}.comment`, value }],
  ['a replacement of several elements', { type: 'replace', path: `${H}.telecom.value`, value }],
  ['a move from nowhere', { type: 'move', path: `${H}.telecom`, source: 2, destination: 0 }],
  ['a move to nowhere', { type: 'move', path: `${H}.telecom`, source: 0, destination: 2 }],
  ['a path with an unknown element', { type: 'delete', path: `${H}.colour` }],
  ['a path into a primitive', { type: 'delete', path: `${H}.name.first` }],
  ['the id', { type: 'replace', path: `${H}.id`, value: { valueId: 'b' } }],
  ['a deleted id', { type: 'delete', path: `${H}.id` }],
  ['the version', { type: 'replace', path: `${H}.meta.versionId`, value: { valueId: '2' } }],
  [
    'the time of the last change',
    { type: 'add', path: `${H}.meta`, name: 'lastUpdated', value: { valueInstant: '2024-01-01T00:00:00Z' } },
  ],
] as const) {
  test(`a FHIRPath Patch with ${title} cannot be applied`, () => {
    assert.equal(situationOf(TWO, patch(parts)), 'patch-not-applicable')
  })
}

for (const [title, parts] of [
  ['an unknown type', { type: 'merge', path: H }],
  ['no type', { path: H }],
  ['no path', { type: 'delete' }],
  ['no name', { type: 'add', path: H, value }],
  ['no value', { type: 'replace', path: `${H}.name` }],
  ['no index', { type: 'insert', path: `${H}.telecom`, value }],
  ['no destination', { type: 'move', path: `${H}.telecom`, source: 0 }],
  ['an unknown part', { type: 'delete', path: `${H}.name`, force: 'x' }],
  ['another resource in the path', { type: 'delete', path: 'Patient.name' }],
  ['a path of a function that is not supported', { type: 'delete', path: `${H}.telecom.skip(1)` }],
  ['a path with arithmetic', { type: 'delete', path: `${H}.telecom[1+0]` }],
  ['a path with a negative index', { type: 'delete', path: `${H}.telecom[-1]` }],
  ['a path with trailing text', { type: 'delete', path: `${H}.name x` }],
  ['a path that ends in a dot', { type: 'delete', path: `${H}.` }],
  ['a path of 1001 characters', { type: 'delete', path: `${H}.${'a'.repeat(1000)}` }],
  ['a path of 65 steps', { type: 'delete', path: `${H}${'[0]'.repeat(65)}` }],
  ['a path of open parentheses', { type: 'delete', path: `${H}.where(${'('.repeat(900)}` }],
] as const) {
  test(`a FHIRPath Patch with ${title} is malformed`, () => {
    assert.equal(situationOf(TWO, patch(parts)), 'patch-malformed')
  })
}

test('a patch with other parameters, repeated parts or without operations is malformed', () => {
  assert.equal(situationOf(TWO, { resourceType: 'Parameters' }), 'patch-malformed')
  const other = { ...operation({ type: 'delete', path: `${H}.name` }), name: 'op' }
  assert.equal(situationOf(TWO, { resourceType: 'Parameters', parameter: [other] }), 'patch-malformed')
  const repeated = operation({ type: 'delete', path: `${H}.name` })
  const parts = repeated.part as readonly JsonObject[]
  const parameter = [{ ...repeated, part: [...parts, parts[1]] }]
  assert.equal(situationOf(TWO, { resourceType: 'Parameters', parameter }), 'patch-malformed')
})

test('a patch is applied as a whole or not at all, and says which operation fails', () => {
  const parameters = patch({ type: 'delete', path: `${H}.name` }, { type: 'replace', path: `${H}.comment`, value })
  assert.throws(() => applyFhirPathPatch(TWO, parameters), { message: /^operation 2: / })
  assert.equal(TWO.name, 'x')
})

test('operations apply in order', () => {
  const parameters = patch(
    { type: 'delete', path: `${H}.name` },
    { type: 'add', path: H, name: 'name', value },
    { type: 'replace', path: `${H}.name`, value: { valueString: 'z' } },
  )
  assert.equal(applyFhirPathPatch(TWO, parameters).name, 'z')
})

/** Paths below HealthcareService, and the values that they name in the example. */
for (const [path, values] of [
  ['.name', ['Psychology services']],
  ['.telecom[1].value', ['services@example.com']],
  ["[0].telecom.where(system = 'phone').value", ['(555) silent']],
  ["telecom.where(system='phone' and use='work').value", ['(555) silent']],
  [".telecom.where(system = 'fax' or rank = 1).value", ['(555) silent']],
  [".telecom.where((system = 'fax' or system = 'email') and use = 'work').value", ['services@example.com']],
  [".telecom.where(system != 'phone').system", ['email']],
  ['.telecom.where(rank.exists()).system', ['phone']],
  ['.telecom.where(period.start = @2020).system', ['email']],
  [".type.where(coding.where(code = '394587001').exists()).coding.display", ['Psychiatry']],
  ['.type.where(coding.userSelected = true).coding.code', ['394587001']],
  ['.availableTime.last().daysOfWeek.first()', ['mon']],
  ['.availableTime.daysOfWeek', ['wed', 'mon', 'tue']],
  ['.availableTime[1].availableStartTime', ['08:30:00']],
  ['.availableTime.where(availableStartTime = @T08:30:00).daysOfWeek[1]', ['tue']],
  [".extension('http://example.org/rating').value", [4.5]],
  ['.extension.value.ofType(decimal)', [4.5]],
  ['.extension.value.as(string)', []],
  ['.extension.where(value = 4.50).url', ['http://example.org/rating']],
  [".contained.where(id = 'area').name", ['Den Burg']],
  ['.`name`', ['Psychology services']],
  ['.name.single()', ['Psychology services']],
  ['.name[1]', []],
  ['.photo.title[0]', ['House']],
] as const) {
  test(`the path ${path} names ${JSON.stringify(values)}`, () => {
    const text = `${H}${/^[.[]/.test(path) ? '' : '.'}${path}`
    const found = elementsAt(fullService(), parseElementPath(text, H))
    assert.deepEqual(
      found.map(place => place.value),
      values,
    )
  })
}

test('extensions of a primitive value can be named', () => {
  const resource = serviceWith({ name: 'x', _name: { extension: [{ url: 'u', valueCode: 'y' }] } })
  const [found] = elementsAt(resource, parseElementPath(`${H}.name.extension.value`, H))
  assert.equal(found!.value, 'y')
})

test('single() refuses several elements', () => {
  const path = parseElementPath(`${H}.telecom.single()`, H)
  assert.throws(() => elementsAt(fullService(), path), ElementPathError)
})
