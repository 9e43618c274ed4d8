/** The list of mediators: a new one is a file in this folder and a row here. */
import type { AnyMediator } from '../mediator.ts'
import { aggregate } from './aggregate.ts'
import { cache } from './cache.ts'
import { call } from './call.ts'
import { guardrail } from '../policies/guardrails.ts'
import { interceptor } from '../policies/interceptor.ts'
import { keepRequest } from '../policies/kept-request.ts'
import { accessClaim } from '../policies/access-claim.ts'
import { jsonThreatProtection, regexThreatProtection, xmlThreatProtection } from '../policies/threat-protection.ts'
import { checkQuery } from '../graphql/check-query.ts'
import { validateContract } from '../openapi/validate-contract.ts'
import { wellFormedBody } from '../policies/well-formed-body.ts'
import { builder } from './builder.ts'
import { callTemplate } from './call-template.ts'
import { callout } from './callout.ts'
import { classMediator } from './class.ts'
import { clone } from './clone.ts'
import { drop } from './drop.ts'
import { enrich } from './enrich.ts'
import { filter } from './filter.ts'
import { foreach } from './foreach.ts'
import { header } from './header.ts'
import { inMediator, outMediator } from './in-out.ts'
import { addMediators } from './loaded.ts'
import { loopback } from './loopback.ts'
import { iterate } from './iterate.ts'
import { log } from './log.ts'
import { makefault } from './makefault.ts'
import { opa } from './opa.ts'
import { payloadFactory } from './payload-factory.ts'
import { property } from './property.ts'
import { propertyGroup } from './property-group.ts'
import { queryParameter } from './query-parameter.ts'
import { resourcePath } from './resource-path.ts'
import { respond } from './respond.ts'
import { rewrite } from './rewrite.ts'
import { scatterGather } from './scatter-gather.ts'
import { script } from './script.ts'
import { send } from './send.ts'
import { soapFaultCheck } from '../soap-fault-check.ts'
import { sequence } from './sequence.ts'
import { switchMediator } from './switch.ts'
import { throwError } from './throw-error.ts'
import { validate } from './validate.ts'
import { variable } from './variable.ts'

export const MEDIATORS: readonly AnyMediator[] = [
  ...[propertyGroup, variable, builder],
  ...[property, payloadFactory, header, log, makefault, enrich],
  ...[filter, switchMediator, sequence, callTemplate, foreach, inMediator, outMediator],
  ...[interceptor, keepRequest, queryParameter, resourcePath, rewrite],
  ...[
    jsonThreatProtection,
    xmlThreatProtection,
    regexThreatProtection,
    guardrail,
    wellFormedBody,
    accessClaim,
    validateContract,
    soapFaultCheck,
    checkQuery,
  ],
  ...[script, classMediator, validate],
  ...[clone, iterate, aggregate, scatterGather, cache, opa],
  ...[send, call, callout, respond, loopback, drop, throwError],
]

addMediators(MEDIATORS)
