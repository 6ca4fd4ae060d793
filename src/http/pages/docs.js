"use strict";
window.addEventListener("load", () => {
  SwaggerUIBundle({ url: "/openapi.json", dom_id: "#surface", deepLinking: true, validatorUrl: null });
});
