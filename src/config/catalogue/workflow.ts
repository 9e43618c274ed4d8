/** `[apim.workflow]`: requests of users that wait for approval, and the engine that may decide them. */
import { isTrue } from '../conditions.ts'
import { actsIf, allActIf, type Key, live, sameAs, section, withAliases } from '../key.ts'
import { flag, isReadableByOthers, secret, text, url } from '../kinds.ts'

const WEB = ['https', 'http'] as const

/** A URL, or only a path for an endpoint of this gateway. */
function endpoint(defaultValue: string, meaning: string): Key<string> {
  const plain = text(defaultValue, meaning)
  const whole = url('', WEB, meaning)
  const read = (given: unknown): string | undefined => {
    const path = plain.read(given)
    return path !== undefined && /^\/[^\s/?#*:{}][^\s?#*:{}]*$/.test(path) ? path : whole.read(given)
  }
  return { ...plain, expects: `${whole.expects}, or a path such as "/token"`, read }
}

const requests = {
  approve_subscriptions: live(flag(true, 'A new subscription, and a change of its policy, waits for approval.')),
  approve_applications: live(flag(true, 'A new application waits for approval.')),
  approve_keys: live(flag(true, 'The generation of keys of an application waits for approval.')),
  call_engine: live(flag(true, 'Call the engine for each request. Without it, administrators decide.')),
}

const engine = {
  service_url: live(
    url(
      'https://localhost:9445/bpmn',
      WEB,
      'Address of the engine, https or on this machine: each request is a POST to `runtime/process-instances` ' +
        'below it, in the form of Activiti; `processDefinitionKey` is the type of the request.',
    ),
  ),
  wf_engine_user: live(
    withAliases(['username'], sameAs('super_admin.username', text('', 'Account at the engine, sent by Basic.'))),
  ),
  wf_engine_pass: live(
    withAliases(['password'], sameAs('super_admin.password', secret('Password of `wf_engine_user`.'))),
  ),
  token_endpoint: live(
    endpoint('/token', 'Endpoint at which the engine gets its token, as the variable `tokenEndpoint`.'),
  ),
  client_registration_endpoint: live(
    endpoint(
      '/client-registration/v0.15/register',
      'Endpoint at which the engine registers as a client, as the variable `clientRegistrationEndpoint`.',
    ),
  ),
  client_registration_username: live(
    text('', 'Account with which the engine registers; it is sent with its password as variables, if both are set.'),
  ),
  client_registration_password: live(secret('Password of `client_registration_username`.')),
}

export const workflow = section(
  'apim.workflow',
  'Approval of requests of users, by administrators or a workflow engine.',
  {
    enable: live(flag(false, 'Let requests of users wait for approval.')),
    ...allActIf(isTrue('.enable'), requests),
    ...allActIf(isTrue('.enable'), allActIf(isTrue('.call_engine'), engine)),
    callback_endpoint: actsIf(
      isTrue('.enable'),
      endpoint(
        '/api/am/publisher/v0.15/workflows/update-workflow-status',
        'Endpoint at which the engine reports its decision, as the variable `callbackUrl`. A path is served here, ' +
          'beside those of the reference platform.',
      ),
    ),
  },
  {
    roles: ['api-devportal', 'api-key-manager', 'api-publisher'],
    rules: [
      {
        keys: ['service_url'],
        must: 'service_url must be https or lead to this machine: it gets passwords',
        severity: 'error',
        holds: it => !(it.enable && it.call_engine && isReadableByOthers(it.service_url)),
      },
      {
        keys: ['callback_endpoint'],
        must: 'callback_endpoint must not be a path of the key manager or of SCIM',
        severity: 'error',
        holds: it => !/^\/(?:oauth2|oidc|client-registration|\.well-known|scim2)(?:\/|$)/.test(it.callback_endpoint),
      },
    ],
  },
)
