//! The service: what it answers, refuses, survives and tells.

mod catalogue;
mod connections;
mod cost;
mod drain;
mod embed;
mod exhaustion;
mod explain;
mod fuzz;
mod healthcheck;
mod in_place_damage;
mod keys;
mod keys_over_http;
mod metrics_page;
mod openapi;
mod pages;
mod pipeline;
mod rank;
mod rankers;
mod refusals;
mod reload;
mod settings;
mod settings_command;
mod similarity;
mod stream;
mod trace;
mod watching;
