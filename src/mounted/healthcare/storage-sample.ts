/** Sample services: plausible, valid, and the same for the same seed. */
import type { JsonObject } from './json-text.ts'

const TYPE_SYSTEM = 'http://terminology.hl7.org/CodeSystem/service-type'
const CATEGORY_SYSTEM = 'http://terminology.hl7.org/CodeSystem/service-category'
const PROGRAM_SYSTEM = 'http://terminology.hl7.org/CodeSystem/program'
const PROVISION_SYSTEM = 'http://terminology.hl7.org/CodeSystem/service-provision-conditions'
const SPECIALTY_SYSTEM = 'http://snomed.info/sct'
const IDENTIFIER_SYSTEM = 'https://services.example.org/identifiers'

type Code = readonly [code: string, display: string]

const CATEGORIES: readonly Code[] = [
  ['1', 'Adoption'],
  ['2', 'Aged Care'],
  ['8', 'Counselling'],
  ['10', 'Dental'],
  ['12', 'Disability Support'],
  ['17', 'General Practice'],
  ['27', 'Specialist Medical'],
  ['31', 'Specialist Surgical'],
]
const TYPES: readonly Code[] = [
  ['3', 'Aged Care Information/Referral'],
  ['57', 'Immunization'],
  ['88', 'General Dental'],
  ['117', 'Emergency Medical'],
  ['124', 'General Practice'],
  ['165', 'Cardiology'],
  ['168', 'Dermatology'],
  ['180', 'Neurology'],
  ['186', 'Paediatric Medicine'],
  ['221', 'Surgery - General'],
]
const SPECIALTIES: readonly Code[] = [
  ['394579002', 'Cardiology'],
  ['394582007', 'Dermatology'],
  ['394591006', 'Neurology'],
  ['394537008', 'Pediatric specialty'],
  ['394814009', 'General practice'],
  ['408443003', 'General medical practice'],
  ['394609007', 'Surgery-general'],
]
const PROGRAMS: readonly Code[] = [
  ['1', 'Acquired Brain Injury (ABI) Program'],
  ['4', 'Better Health Program'],
  ['29', 'Mobile Health Program'],
]
const CHARACTERISTICS: readonly Code[] = [
  ['wheelchair', 'Wheelchair access'],
  ['parking', 'Parking'],
  ['interpreter', 'Interpreter on request'],
]
const PLACES = ['Ashford', 'Brookfield', 'Coimbra', 'Delmenhorst', 'Évora', 'Falun', 'Göttingen', 'Hillcrest'] as const
const KINDS = ['Community', 'Regional', 'University', 'Saint Mary', "Queen's", 'North-West', 'Riverside'] as const
const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

const ORGANIZATIONS = 400
const LOCATIONS = 2000
const TYPE_DIGITS = 6

/** So many services, in the order of their ids `sample-000001` and so on. `seed`: 32 bits. */
export function* sampleServices(count: number, seed = 1): Iterable<JsonObject> {
  const random = new Draw(seed)
  for (let number = 1; number <= count; number++) yield sampleService(number, random)
}

function sampleService(number: number, random: Draw): JsonObject {
  const type = random.pick(TYPES)
  const place = random.pick(PLACES)
  const name = `${random.pick(KINDS)} ${type[1]} ${place} ${number}`
  const days = DAYS.slice(0, 5 + random.below(3))
  return {
    resourceType: 'HealthcareService',
    id: `sample-${String(number).padStart(TYPE_DIGITS, '0')}`,
    meta: { tag: [{ system: 'https://services.example.org/tags', code: 'sample' }] },
    identifier: [{ use: 'official', system: IDENTIFIER_SYSTEM, value: `HS-${number}` }],
    active: random.below(10) > 0,
    providedBy: { reference: `Organization/org-${1 + random.below(ORGANIZATIONS)}` },
    category: [concept(CATEGORY_SYSTEM, random.pick(CATEGORIES))],
    type: [concept(TYPE_SYSTEM, type)],
    specialty: [concept(SPECIALTY_SYSTEM, random.pick(SPECIALTIES))],
    location: [{ reference: `Location/loc-${1 + random.below(LOCATIONS)}`, display: place }],
    name,
    comment: `Referral is ${random.below(2) === 0 ? 'required' : 'not required'}.`,
    telecom: [{ system: 'phone', value: `+00 555 ${1000 + random.below(9000)}`, use: 'work' }],
    coverageArea: [{ reference: `Location/area-${1 + random.below(PLACES.length)}` }],
    serviceProvisionCode: [concept(PROVISION_SYSTEM, ['free', 'Free'])],
    ...(random.below(3) === 0 ? { program: [concept(PROGRAM_SYSTEM, random.pick(PROGRAMS))] } : {}),
    characteristic: [concept('https://services.example.org/characteristics', random.pick(CHARACTERISTICS))],
    appointmentRequired: random.below(2) === 0,
    availableTime: [{ daysOfWeek: days, availableStartTime: '08:30:00', availableEndTime: '17:00:00' }],
    notAvailable: [{ description: 'Public holidays' }],
    endpoint: [{ reference: `Endpoint/end-${1 + random.below(ORGANIZATIONS)}` }],
  }
}

function concept(system: string, [code, display]: Code): JsonObject {
  return { coding: [{ system, code, display }], text: display }
}

/** Numbers that the seed determines (mulberry32). */
class Draw {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  below(end: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % end
  }

  pick<T>(of: readonly T[]): T {
    return of[this.below(of.length)]!
  }
}
