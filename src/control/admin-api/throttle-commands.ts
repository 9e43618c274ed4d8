/** Commands about throttling policies and deny policies, for the command line. */
import type { DenyPolicy, Quota } from '../../throttle/policy.ts'
import { POLICY_LEVELS } from '../../throttle/policy-body.ts'
import type { AdminServices } from './admin-services.ts'
import { type ListedPolicy, PolicyService, withoutEnvelope } from './policy-service.ts'
import { notFoundProblem, Problem } from './problem.ts'
import { oneOf, optional, readMembers, text } from './request-fields.ts'

/** Runs an action of `sluice`; `request`: its members as they came. */
export type ManagementAction = (request: Readonly<Record<string, unknown>>) => Promise<object>

const LEVEL = oneOf(...POLICY_LEVELS)
const OF_POLICY = { level: LEVEL, policy: text(255) }
const OF_DENIED = { deny: text(800) }
const FLAG = optional(oneOf('true', 'false'), 'false')

export function throttleCommands(services: () => AdminServices): Readonly<Record<string, ManagementAction>> {
  const policies = new PolicyService(services)
  const user = (): string => services().adminName
  return {
    'throttle policy list': async request => {
      const { level } = readMembers(request, { level: optional(oneOf(...POLICY_LEVELS, 'all'), 'all') })
      const levels = POLICY_LEVELS.filter(each => level === 'all' || each === level)
      const lists = await Promise.all(levels.map(each => policies.list(each)))
      return { policies: lists.flat().map(policyRow) }
    },
    'throttle policy show': async request => {
      const { level, policy } = readMembers(request, OF_POLICY)
      const { id, source, warning, body } = await policies.get(level, policy)
      return { level, id, source, ...(warning === '' ? {} : { warning }), ...body }
    },
    'throttle policy apply': async ({ body, ...request }) => {
      const { level } = readMembers(request, { level: LEVEL })
      if (typeof body !== 'object' || body === null || Array.isArray(body))
        throw new Problem(400, 'the file has no names with their values')
      return policyRow(await policies.apply(level, withoutEnvelope(body), user()))
    },
    'throttle policy remove': async request => {
      const { level, policy } = readMembers(request, OF_POLICY)
      return policyRow(await policies.remove(level, policy, user()))
    },
    'throttle deny list': async request => {
      readMembers(request, {})
      return { denied: (await policies.listDenied()).map(({ policy, source }) => ({ ...denyRow(policy), source })) }
    },
    'throttle deny add': async request => {
      const fields = { type: text(20), value: text(700), invert: FLAG }
      const { type, value, invert } = readMembers(request, fields)
      const conditionValue = conditionValueOf(type.toUpperCase(), value, invert === 'true')
      return denyRow(await policies.deny({ conditionType: type.toUpperCase(), conditionValue }, user()))
    },
    'throttle deny enable': async request => {
      return denyRow(await policies.switchDenied(await idOf(policies, request), true, user()))
    },
    'throttle deny disable': async request => {
      return denyRow(await policies.switchDenied(await idOf(policies, request), false, user()))
    },
    'throttle deny remove': async request => {
      return denyRow(await policies.removeDenied(await idOf(policies, request), user()))
    },
  }
}

/** Id of the deny policy that an id or a value names. Throws Problem. */
async function idOf(policies: PolicyService, request: Readonly<Record<string, unknown>>): Promise<string> {
  const { deny } = readMembers(request, OF_DENIED)
  const found = (await policies.listDenied()).filter(({ policy }) => policy.id === deny || policy.value === deny)
  const [one, other] = found
  if (one === undefined) throw notFoundProblem('deny policy')
  if (other !== undefined) throw new Problem(409, 'several deny policies have this value: give the id')
  return one.policy.id
}

function conditionValueOf(type: string, value: string, invert: boolean): unknown {
  if (type === 'IP') return { fixedIp: value, invert }
  if (type !== 'IPRANGE') {
    if (invert) throw new Problem(400, '--invert is for addresses: IP and IPRANGE')
    return value
  }
  const [startingIp = '', endingIp = ''] = value.split('-').map(part => part.trim())
  return { startingIp, endingIp, invert }
}

function policyRow({ policy, source, warning }: ListedPolicy): object {
  const { level, name, quota } = policy
  return { level, name, limit: quotaText(quota), source, ...(warning === '' ? {} : { warning }) }
}

function quotaText(quota: Quota | null): string {
  if (quota === null) return 'none'
  const { type, limit, units, unit } = quota
  const amount = type === 'bandwidth' ? `${limit} bytes` : `${limit} ${type}`
  return `${amount} per ${units === 1 ? unit : `${units} ${unit}`}`
}

function denyRow({ id, type, value, inverted, enabled }: DenyPolicy) {
  return { id, type, value, inverted, enabled }
}
