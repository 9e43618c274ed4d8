/** Scopes of the admin API with the roles that may have them: the scopes of the reference platform that it requires. */

export const ADMIN_ROLE = 'admin'
/** Roles of users who own applications, and of users who publish or view APIs. */
const SUBSCRIBER = 'Internal/subscriber'
const PUBLISHER = 'Internal/publisher'
const CREATOR = 'Internal/creator'

export const MANAGEMENT_SCOPES: Readonly<Record<string, readonly string[]>> = {
  'apim:app_manage': [ADMIN_ROLE, SUBSCRIBER],
  'apim:subscribe': [ADMIN_ROLE, SUBSCRIBER],
  'apim:sub_manage': [ADMIN_ROLE, SUBSCRIBER],
  'apim:api_key': [ADMIN_ROLE, SUBSCRIBER],
  'apim:api_view': [ADMIN_ROLE, PUBLISHER, CREATOR],
  'apim:api_publish': [ADMIN_ROLE, PUBLISHER],
  'apim:subscription_view': [ADMIN_ROLE, PUBLISHER],
  'apim:subscription_block': [ADMIN_ROLE, PUBLISHER],
  'apim:api_workflow_view': [ADMIN_ROLE],
  'apim:api_workflow_approve': [ADMIN_ROLE],
  'apim:admin': [ADMIN_ROLE],
  internal_user_mgt_list: [ADMIN_ROLE],
  internal_user_mgt_view: [ADMIN_ROLE],
  internal_user_mgt_create: [ADMIN_ROLE],
  internal_user_mgt_update: [ADMIN_ROLE],
  internal_user_mgt_delete: [ADMIN_ROLE],
}
